"""Whose a log directory is: `meta.properties`, and what is refused for belonging to others."""

from typing import Final

from ottla.env.disk import Disk
from ottla.storage.checkpoint import MetaProperties

LOCK: Final = ".lock"
META_PROPERTIES: Final = "meta.properties"

# What an empty directory may hold: a file system's own, and a formatting that was cut off.
_NOTHING: Final = frozenset(
    {
        LOCK,
        "lost+found",
        f"{META_PROPERTIES}.tmp",
        "bootstrap.checkpoint",
        "bootstrap.checkpoint.tmp",
    }
)


class DirectoryRefused(Exception):
    """A directory that this broker must not use; the message says what to do about it."""


def read_meta(disk: Disk, path: str) -> MetaProperties | None:
    """The directory's identity; None if it was never formatted."""
    file = f"{path}/{META_PROPERTIES}"
    return MetaProperties.decode(file, disk.read(file)) if disk.exists(file) else None


def is_unused(disk: Disk, path: str) -> bool:
    """Whether nothing is in the directory that somebody might miss."""
    return not disk.exists(path) or _NOTHING.issuperset(disk.list(path))


def refuse_foreign(
    disk: Disk,
    path: str,
    meta: MetaProperties | None,
    cluster_id: str | None,
    node_id: int | None,
) -> None:
    if meta is None:
        if not is_unused(disk, path):
            raise DirectoryRefused(
                f"{path} holds other files and no {META_PROPERTIES}: it is no log directory. "
                "Choose an empty directory (log.dirs), or mount the right disk there."
            )
        return
    if cluster_id is not None and meta.cluster_id != cluster_id:
        raise DirectoryRefused(
            f"{path} belongs to the cluster {meta.cluster_id}, not to {cluster_id}: choose "
            "another directory (log.dirs), or the right cluster id."
        )
    if node_id is not None and meta.node_id != node_id:
        raise DirectoryRefused(
            f"{path} belongs to node {meta.node_id}, and this is node {node_id}: set node.id to "
            f"{meta.node_id}, or choose another directory (log.dirs)."
        )
