"""Whether a node may make its own directories ready before it starts, and for whom.

`ottla up` formats what is empty. `ottla start` does so only where nobody else would miss us; an
unmounted disk must not become a new cluster, nor a voter one without memory. Otherwise a person
has to say so with `ottla format`.
"""

from collections.abc import Callable

from ottla.broker.node.directory_format import Format, format_directories, may_format_unasked
from ottla.broker.settings.settings import Settings
from ottla.client.joining import find_cluster_id
from ottla.env.disk import Disk
from ottla.env.network import Address as Server
from ottla.metadata.image.ids import new_uuid
from ottla.model.errors import FormatRefused
from ottla.model.types import WallTime, uuid_text
from ottla.quorum.voters import Address
from ottla.storage.identity import is_unused, read_meta

LOOPBACK = ("localhost", "127.0.0.1", "::1")

RandomBytes = Callable[[int], bytes]


def format_for(settings: Settings, cluster_id: str, *, ignore_formatted: bool = False) -> Format:
    """This node alone in its cluster: a voter by record, or by setting where that names one."""
    return Format(
        cluster_id=cluster_id,
        node_id=settings.node_id,
        directories=all_directories(settings),
        metadata_directory=settings.metadata_log_dir,
        standalone_at=None if settings.is_quorum_static else controller_addresses(settings),
        is_dynamic=not settings.is_quorum_static,
        ignore_formatted=ignore_formatted,
    )


def prepare_up(
    disk: Disk, settings: Settings, now: WallTime, random_bytes: RandomBytes
) -> list[str]:
    """Format every empty directory; returns what was done, a line each."""
    empty = [path for path in all_directories(settings) if is_unused(disk, path)]
    if not empty:
        return []
    if len(empty) == len(all_directories(settings)):
        cluster_id = uuid_text(new_uuid(random_bytes))
    elif settings.metadata_log_dir in empty:
        raise FormatRefused(
            f"{settings.metadata_log_dir} is empty, but it should hold the metadata log of the "
            "other directories: mount the right disk there, or set metadata.log.dir."
        )
    else:
        meta = read_meta(disk, settings.metadata_log_dir)
        if meta is None:
            return []  # Not ours at all; opening it will say so.
        cluster_id = meta.cluster_id
    wanted = format_for(settings, cluster_id, ignore_formatted=True)
    return format_directories(disk, wanted, now, random_bytes)


def prepare_start(
    disk: Disk, settings: Settings, now: WallTime, random_bytes: RandomBytes, *, file: str
) -> list[str]:
    """Format if every directory is empty and we are alone; refuse if only a person can know."""
    directories = all_directories(settings)
    empty = [path for path in directories if is_unused(disk, path)]
    if not empty:
        return []
    cluster_id = uuid_text(new_uuid(random_bytes))
    voters = [settings.node_id] * (1 if is_alone(settings) else 2)
    if may_format_unasked(disk, directories, voters):
        return format_directories(disk, format_for(settings, cluster_id), now, random_bytes)
    meta = next(filter(None, (read_meta(disk, path) for path in directories)), None)
    raise FormatRefused(
        f"{', '.join(empty)} is not formatted. If that is not a disk that should be mounted there, "
        + _format_command(settings, meta.cluster_id if meta else None, cluster_id, file)
    )


def _format_command(settings: Settings, known: str | None, fresh: str, file: str) -> str:
    """What a person has to run; never a new cluster id where a quorum may have one already."""
    more = " --ignore-formatted" if known else ""
    alone = is_alone(settings)
    if known is None and not alone:
        servers = [
            Server(item.host, item.port) for item in settings.controller_quorum_bootstrap_servers
        ]
        voters = [Server(item.host, item.port) for item in settings.controller_quorum_voters]
        known = find_cluster_id([*servers, *voters])
    if settings.is_quorum_static:
        return f"run: ottla format -t {known or fresh} -c {file}{more}"
    if alone:
        return f"run: ottla format -t {known or fresh} -c {file} --standalone{more}"
    command = (
        f"run: ottla format -t {known or 'CLUSTER_ID'} -c {file} --no-initial-controllers{more}"
    )
    if known is None:
        return (
            "start the controllers first, for none of controller.quorum.bootstrap.servers answers "
            f"with the id of its cluster; then {command}"
        )
    return command


def is_alone(settings: Settings) -> bool:
    """Whether nothing in the settings points to a controller other than this node."""
    if settings.is_quorum_static:
        return [voter.node_id for voter in settings.controller_quorum_voters] == [settings.node_id]
    ours = {
        (host, endpoint.port)
        for endpoint in (*settings.controller_listeners, *settings.advertised_listeners)
        if endpoint.name in settings.controller_listener_names
        for host in (endpoint.host, *LOOPBACK)
    }
    return all(
        (server.host, server.port) in ours
        for server in settings.controller_quorum_bootstrap_servers
    )


def controller_addresses(settings: Settings) -> dict[str, Address]:
    """Where this node's controller is reached, by listener."""
    return {
        endpoint.name: Address(endpoint.host, endpoint.port)
        for endpoint in settings.advertised_listeners
        if endpoint.name in settings.controller_listener_names
    }


def all_directories(settings: Settings) -> list[str]:
    return list(dict.fromkeys([*settings.log_dirs, settings.metadata_log_dir]))
