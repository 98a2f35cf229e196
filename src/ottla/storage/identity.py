"""Whose a log directory is: `meta.properties`, and what is refused for belonging to others."""

from dataclasses import dataclass
from typing import Final

from ottla.env.disk import Disk, Lock
from ottla.model.errors import Damaged
from ottla.model.types import NodeId, Uuid, uuid_from_text, uuid_text
from ottla.storage.checkpoint import parse_properties, replace_file

LOCK: Final = ".lock"
META_PROPERTIES: Final = "meta.properties"

# What an empty directory may hold: a file system's own, and a formatting that was cut off.
_NOTHING: Final = frozenset({LOCK, "lost+found", f"{META_PROPERTIES}.tmp"})
_BOOTSTRAP: Final = "bootstrap.checkpoint"
_METADATA: Final = "__cluster_metadata-0"
_FIRST_SNAPSHOT: Final = "00000000000000000000-0000000000."


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """Who this node is, as its directories say."""

    node_id: NodeId
    cluster_id: str
    directory_id: Uuid  # Of the directory that holds the metadata log.


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """What `meta.properties` says of a formatted directory."""

    cluster_id: str
    node_id: int
    directory_id: Uuid | None = None

    def encode(self) -> bytes:
        lines = [
            "#",
            "version=1",
            f"cluster.id={self.cluster_id}",
            f"node.id={self.node_id}",
        ]
        if self.directory_id is not None:
            lines.append(f"directory.id={uuid_text(self.directory_id)}")
        return "".join(f"{line}\n" for line in lines).encode()

    @classmethod
    def decode(cls, path: str, content: bytes) -> "MetaProperties":
        fields = parse_properties(content.decode(errors="replace"))
        version = fields.get("version", "0")
        if version != "1":
            raise Damaged(path, 0, f"version {version} of meta.properties is not known")
        try:
            directory = fields.get("directory.id")
            return cls(
                cluster_id=fields["cluster.id"],
                node_id=int(fields["node.id"]),
                directory_id=None if directory is None else uuid_from_text(directory),
            )
        except (KeyError, ValueError) as error:
            raise Damaged(path, 0, f"cluster.id, node.id or directory.id: {error}") from error


class DirectoryRefused(Exception):
    """A directory that this broker must not use; the message says what to do about it."""


def take(disk: Disk, path: str) -> Lock:
    """Make the directory if there is none, and lock it; DirectoryRefused if that cannot be."""
    try:
        _make_directory(disk, path)
        return disk.lock(f"{path}/{LOCK}")
    except BlockingIOError as error:
        raise DirectoryRefused(
            f"{path} is in use by another broker: stop that one, or give this one a directory of "
            "its own (log.dirs)."
        ) from error
    except PermissionError as error:
        raise DirectoryRefused(
            f"{path} may not be written by this user: give it the right to, or choose another "
            "directory (log.dirs)."
        ) from error
    except (FileExistsError, NotADirectoryError) as error:
        raise DirectoryRefused(
            f"{path} is not a directory: choose another one (log.dirs)."
        ) from error


def _make_directory(disk: Disk, path: str) -> None:
    """Make it and what is above it, so that a power cut does not take it away again."""
    parents: list[str] = []
    missing = path
    while missing and not disk.exists(missing):
        missing = missing.rpartition("/")[0]
        parents.append(missing or ("/" if path.startswith("/") else "."))
    disk.make_directory(path)
    for parent in parents:
        disk.sync_directory(parent)


def read_meta(disk: Disk, path: str) -> MetaProperties | None:
    """The directory's identity; None if it was never formatted."""
    file = f"{path}/{META_PROPERTIES}"
    return MetaProperties.decode(file, disk.read(file)) if disk.exists(file) else None


def write_meta(disk: Disk, path: str, meta: MetaProperties) -> None:
    replace_file(disk, f"{path}/{META_PROPERTIES}", meta.encode())


def is_unused(disk: Disk, path: str) -> bool:
    """Whether nothing is in the directory that somebody might miss."""
    if not disk.exists(path):
        return True
    return all(
        name in _NOTHING or name.startswith(_BOOTSTRAP) or _is_formatted_only(disk, path, name)
        for name in disk.list(path)
    )


def _is_formatted_only(disk: Disk, path: str, name: str) -> bool:
    """Whether this is the metadata log as formatting leaves it: the first voters, and no log."""
    return name == _METADATA and all(
        file.startswith(_FIRST_SNAPSHOT) for file in disk.list(f"{path}/{name}")
    )


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
