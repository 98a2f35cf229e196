"""How the settings about addresses fit together, by Kafka's rules.

Which listener is whose, what is advertised where only a listener is given, and what is refused:
an address nobody can route to, a name without a protocol, a protocol that is not built.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from ottla.broker.settings.endpoints import (
    SECURITY_PROTOCOLS,
    Endpoint,
    HostPort,
    Voter,
    parse_endpoints,
    parse_host_port,
    parse_limits,
    parse_protocol_map,
    parse_voters,
)
from ottla.broker.settings.error import refuse
from ottla.model.types import NodeId

Values = Mapping[str, Any]
Origins = Mapping[str, str]


class Addresses(TypedDict):
    """The attributes of Settings that this module works out."""

    node_id: NodeId
    listeners: list[Endpoint]
    advertised_listeners: list[Endpoint]
    listener_security_protocol_map: dict[str, str]
    inter_broker_listener_name: str
    controller_listener_names: list[str]
    controller_quorum_voters: list[Voter]
    controller_quorum_bootstrap_servers: list[HostPort]
    max_connections_per_ip_overrides: dict[str, int]
    ottla_metrics_listener: HostPort | None
    log_dirs: list[str]
    metadata_log_dir: str


def resolve_addresses(values: Values, origins: Origins, host_name: Callable[[], str]) -> Addresses:
    _check_roles(values, origins)
    node_id = _node_id(values, origins)
    controllers = [name.upper() for name in values["controller.listener.names"] or []]
    if not controllers:
        refuse("controller.listener.names", None, "is missing: name a listener", origins)
    protocols = _protocol_map(values, controllers, origins)
    listeners = _listeners(values, protocols, controllers, origins)
    advertised = _advertised(values, protocols, listeners, controllers, origins, host_name)
    voters: list[Voter] = _parsed("controller.quorum.voters", values, origins, parse_voters)
    _check_voters(voters, node_id, values, origins)
    directories = _log_dirs(values, origins)
    metrics = values["ottla.metrics.listener"]
    return Addresses(
        node_id=node_id,
        listeners=listeners,
        advertised_listeners=advertised,
        listener_security_protocol_map=protocols,
        inter_broker_listener_name=_inter_broker(values, listeners, controllers, origins),
        controller_listener_names=controllers,
        controller_quorum_voters=voters,
        controller_quorum_bootstrap_servers=_parsed(
            "controller.quorum.bootstrap.servers",
            values,
            origins,
            lambda items: [parse_host_port(item) for item in items],
        ),
        max_connections_per_ip_overrides=_parsed(
            "max.connections.per.ip.overrides", values, origins, parse_limits
        ),
        ottla_metrics_listener=(
            _parsed("ottla.metrics.listener", values, origins, parse_host_port) if metrics else None
        ),
        log_dirs=directories,
        metadata_log_dir=values["metadata.log.dir"] or directories[0],
    )


def _parsed(key: str, values: Values, origins: Origins, parse: Callable[[Any], Any]) -> Any:  # noqa: ANN401
    value = values[key]
    try:
        return parse(value)
    except ValueError as error:
        text = ",".join(value) if isinstance(value, list) else value
        refuse(key, text, f"cannot be used: {error}", origins)


def _check_roles(values: Values, origins: Origins) -> None:
    roles = values["process.roles"]
    if not roles:
        refuse("process.roles", None, "is missing: set it to broker,controller", origins)
    if len(set(roles)) < len(roles):
        refuse("process.roles", ",".join(roles), "names a role twice", origins)


def _node_id(values: Values, origins: Origins) -> NodeId:
    by_name, by_old_name = values["node.id"], values["broker.id"]
    if by_name is None and by_old_name == -1:
        refuse("node.id", None, "is missing: give this node a number from 0 up", origins)
    if by_name is None:
        if by_old_name < 0:
            refuse("broker.id", str(by_old_name), "must be at least 0", origins)
        return NodeId(by_old_name)
    if by_old_name not in (-1, by_name):
        refuse("broker.id", str(by_old_name), f"must equal node.id, which is {by_name}", origins)
    return NodeId(by_name)


def _protocol_map(values: Values, controllers: list[str], origins: Origins) -> dict[str, str]:
    key = "listener.security.protocol.map"
    text: str = values[key]
    protocols: dict[str, str] = _parsed(
        key,
        {key: [item.strip() for item in text.split(",") if item.strip()]},
        origins,
        parse_protocol_map,
    )
    for name in controllers:
        # As Kafka does: a controller listener nobody mapped speaks plain text, unless its name
        # already means something else.
        if name not in SECURITY_PROTOCOLS:
            protocols.setdefault(name, "PLAINTEXT")
    return protocols


def _listeners(
    values: Values, protocols: dict[str, str], controllers: list[str], origins: Origins
) -> list[Endpoint]:
    key = "listeners"
    text = ",".join(values[key])
    listeners: list[Endpoint] = _parsed(
        key, values, origins, lambda items: parse_endpoints(items, protocols)
    )
    for endpoint in listeners:
        if endpoint.protocol != "PLAINTEXT":
            problem = f"needs {endpoint.protocol}, which is not built yet: use PLAINTEXT"
            refuse(key, text, problem, origins)
    _check_listeners({endpoint.name for endpoint in listeners}, controllers, values, origins)
    _check_ports(listeners, text, origins)
    return listeners


def _check_listeners(
    names: set[str], controllers: list[str], values: Values, origins: Origins
) -> None:
    """Each role has its own listeners, and no others."""
    text, roles = ",".join(values["listeners"]), values["process.roles"]
    if "controller" in roles and not names & set(controllers):
        problem = f"has no listener for the controller, which is named {controllers[0]}"
        refuse("listeners", text, problem, origins)
    if "broker" in roles and not names - set(controllers):
        refuse("listeners", text, "has no listener for clients", origins)
    if "controller" not in roles and names & set(controllers):
        problem = f"has the listener {controllers[0]}, but this node is no controller"
        refuse("listeners", text, problem, origins)
    if "broker" not in roles and names - set(controllers):
        refuse("listeners", text, "has a listener for clients, but this is no broker", origins)


def _check_ports(listeners: list[Endpoint], text: str, origins: Origins) -> None:
    taken: dict[int, list[str]] = {}
    for endpoint in listeners:
        if endpoint.port:
            taken.setdefault(endpoint.port, []).append(endpoint.host)
    for port, hosts in taken.items():
        # One port may serve an IPv4 and an IPv6 address; anything more collides.
        families = [":" in host for host in hosts]
        if len(hosts) > 1 and (len(set(families)) < len(hosts) or "" in hosts):
            refuse("listeners", text, f"uses port {port} twice", origins)


def _advertised(
    values: Values,
    protocols: dict[str, str],
    listeners: list[Endpoint],
    controllers: list[str],
    origins: Origins,
    host_name: Callable[[], str],
) -> list[Endpoint]:
    key = "advertised.listeners"
    given = values[key]
    if not given:
        return [_reachable(endpoint, values, origins, host_name) for endpoint in listeners]
    advertised: list[Endpoint] = _parsed(
        key, values, origins, lambda items: parse_endpoints(items, protocols)
    )
    text, known = ",".join(given), {endpoint.name for endpoint in listeners}
    for endpoint in advertised:
        if endpoint.name not in known:
            refuse(key, text, f"names {endpoint.name}, which is not in listeners", origins)
        if endpoint.host in ("0.0.0.0", "::"):  # noqa: S104
            problem = f"cannot tell clients to connect to {endpoint.host}: name a real address"
            refuse(key, text, problem, origins)
        if not endpoint.host:
            refuse(key, text, f"names no host for {endpoint.name}", origins)
    for endpoint in listeners:
        if endpoint.name not in {a.name for a in advertised}:
            if endpoint.name not in controllers:
                continue  # Kafka keeps such a listener open, and tells nobody about it.
            advertised.append(_reachable(endpoint, values, origins, host_name))
    names = {endpoint.name for endpoint in advertised}
    if "broker" in values["process.roles"] and not names - set(controllers):
        refuse(key, text, "has no listener for clients", origins)
    return advertised


def _reachable(
    endpoint: Endpoint, values: Values, origins: Origins, host_name: Callable[[], str]
) -> Endpoint:
    if endpoint.host in ("0.0.0.0", "::"):  # noqa: S104
        problem = (
            f"listens on {endpoint.host}, which no client can connect to: "
            "set advertised.listeners to an address they can"
        )
        refuse("listeners", ",".join(values["listeners"]), problem, origins)
    if endpoint.host:
        return endpoint
    return Endpoint(endpoint.name, host_name(), endpoint.port, endpoint.protocol)


def _inter_broker(
    values: Values, listeners: list[Endpoint], controllers: list[str], origins: Origins
) -> str:
    clients = [endpoint.name for endpoint in listeners if endpoint.name not in controllers]
    given = values["inter.broker.listener.name"]
    if given is None:
        protocol: str = values["security.inter.broker.protocol"]
        if protocol != "PLAINTEXT":
            refuse("security.inter.broker.protocol", protocol, "is not built yet", origins)
        return protocol if protocol in clients or not clients else clients[0]
    if given.upper() not in clients:
        problem = f"must be one of the listeners for clients: {', '.join(clients)}"
        refuse("inter.broker.listener.name", given, problem, origins)
    return str(given.upper())


def _check_voters(voters: list[Voter], node_id: NodeId, values: Values, origins: Origins) -> None:
    key = "controller.quorum.voters"
    text = ",".join(values[key])
    is_controller = "controller" in values["process.roles"]
    is_listed = node_id in {voter.node_id for voter in voters}
    if voters and is_controller and not is_listed:
        refuse(key, text, f"must list this node, whose node.id is {node_id}", origins)
    if is_listed and not is_controller:
        refuse(key, text, f"lists this node, {node_id}, which is no controller", origins)
    if not is_controller and not voters and not values["controller.quorum.bootstrap.servers"]:
        key = "controller.quorum.bootstrap.servers"
        refuse(key, None, "is missing: say where the controllers are", origins)


def _log_dirs(values: Values, origins: Origins) -> list[str]:
    key = "log.dirs" if values["log.dirs"] else "log.dir"
    directories: list[str] = values[key]
    if not directories or not all(directories):
        refuse(key, ",".join(directories), "must name a directory", origins)
    return directories
