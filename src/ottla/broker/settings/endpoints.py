"""Addresses as settings write them: listeners, host:port pairs and voters.

An IPv6 address stands in brackets; an empty host in a listener means every interface. Raises
ValueError with what is wrong; `Settings` adds the key and where it was set.
"""

from dataclasses import dataclass

from ottla.model.types import NodeId

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@dataclass(frozen=True, slots=True)
class HostPort:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A listener: its name, its security protocol and its address."""

    name: str
    host: str  # Empty for every interface.
    port: int  # 0 lets the system choose.
    protocol: str = "PLAINTEXT"

    def __str__(self) -> str:
        return f"{self.name}://{HostPort(self.host, self.port)}"


@dataclass(frozen=True, slots=True)
class Voter:
    node_id: NodeId
    host: str
    port: int


def parse_host_port(text: str, *, host_required: bool = True) -> HostPort:
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{text} needs brackets around its IPv6 address, as in [::1]:9092")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise ValueError(f"{text} is not of the form host:port")
    if host_required and not host:
        raise ValueError(f"{text} names no host")
    return HostPort(host, int(port))


def parse_endpoints(items: list[str], protocols: dict[str, str]) -> list[Endpoint]:
    """Listeners as NAME://host:port; every name must be in the protocol map."""
    endpoints = [_parse_endpoint(item, protocols) for item in items]
    names = [endpoint.name for endpoint in endpoints]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"each listener needs a name of its own, but {name} comes twice")
    return endpoints


def parse_voters(items: list[str]) -> list[Voter]:
    voters = []
    for item in items:
        node, at, address = item.partition("@")
        if not at or not (node.isascii() and node.isdigit()):
            raise ValueError(f"{item} is not of the form id@host:port")
        where = parse_host_port(address)
        voters.append(Voter(NodeId(int(node)), where.host, where.port))
    if len({voter.node_id for voter in voters}) < len(voters):
        raise ValueError("each voter needs an id of its own")
    return voters


def parse_protocol_map(items: list[str]) -> dict[str, str]:
    """Pairs of listener name and security protocol; names count in upper case, as in Kafka."""
    protocols: dict[str, str] = {}
    for item in items:
        name, colon, protocol = item.partition(":")
        protocol = protocol.strip().upper()
        if not colon or protocol not in SECURITY_PROTOCOLS:
            allowed = ", ".join(SECURITY_PROTOCOLS)
            raise ValueError(f"{item} is not of the form NAME:PROTOCOL with one of {allowed}")
        protocols[name.strip().upper()] = protocol
    return protocols


def parse_limits(text: str) -> dict[str, int]:
    """Pairs of host and limit, as max.connections.per.ip.overrides has them."""
    limits: dict[str, int] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        host, colon, limit = item.rpartition(":")
        if not colon or not host or not (limit.isascii() and limit.isdigit()):
            raise ValueError(f"{item} is not of the form host:limit")
        limits[host.strip("[]")] = int(limit)
    return limits


def _parse_endpoint(text: str, protocols: dict[str, str]) -> Endpoint:
    name, separator, address = text.partition("://")
    if not separator or not name:
        raise ValueError(f"{text} is not of the form NAME://host:port")
    name = name.upper()
    if name not in protocols:
        raise ValueError(f"{name} is missing from listener.security.protocol.map")
    where = parse_host_port(address, host_required=False)
    return Endpoint(name, where.host, where.port, protocols[name])
