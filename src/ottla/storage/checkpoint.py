"""Small text files that are replaced as a whole: Kafka's checkpoints and properties.

A file is written beside its place, synced, renamed over it, and the directory is synced: after a
crash there is the old one or the new one, never a half.
"""

import json
from collections.abc import Mapping
from typing import Final

from ottla.env.disk import Disk
from ottla.model.errors import Damaged
from ottla.model.types import Offset, TopicPartition, Uuid, uuid_from_text, uuid_text

_VERSION: Final = "0"
_TEMPORARY: Final = ".tmp"

EpochEntry = tuple[int, Offset]  # A leader epoch, and the first offset that it wrote.


def replace_file(disk: Disk, path: str, content: bytes, *, sync: bool = True) -> None:
    """Put `content` at `path` in one step. Without `sync`, only kill -9 is survived, not power."""
    write_beside(disk, path, content, sync=sync)
    put_in_place(disk, path)
    if sync:
        disk.sync_directory(path.rpartition("/")[0])


def replace_files(disk: Disk, directory: str, contents: Mapping[str, bytes]) -> None:
    """The same for several files of one directory, with one sync of the directory."""
    paths = {f"{directory}/{name}": content for name, content in contents.items()}
    for path, content in paths.items():
        write_beside(disk, path, content, sync=True)
    for path in paths:
        put_in_place(disk, path)
    disk.sync_directory(directory)


def write_beside(disk: Disk, path: str, content: bytes, *, sync: bool = False) -> None:
    file = disk.open(path + _TEMPORARY, create=True)
    try:
        if file.size:
            file.truncate(0)
        file.append([content])
        if sync:
            file.sync()
    finally:
        file.close()


def put_in_place(disk: Disk, path: str) -> None:
    disk.rename(path + _TEMPORARY, path)


def encode_offsets(offsets: Mapping[TopicPartition, Offset]) -> bytes:
    """The form of recovery-point-, log-start- and replication-offset-checkpoint."""
    lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    return _encode(sorted(lines))


def decode_offsets(path: str, content: bytes) -> dict[TopicPartition, Offset]:
    offsets: dict[TopicPartition, Offset] = {}
    for topic, partition, offset in _decode(path, content, 3):
        offsets[TopicPartition(topic, int(partition))] = int(offset)
    return offsets


def encode_epochs(entries: list[EpochEntry]) -> bytes:
    return _encode([f"{epoch} {offset}" for epoch, offset in entries])


def decode_epochs(path: str, content: bytes) -> list[EpochEntry]:
    return [(int(epoch), int(offset)) for epoch, offset in _decode(path, content, 2)]


def _encode(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in (_VERSION, str(len(lines)), *lines)).encode()


def _decode(path: str, content: bytes, width: int) -> list[list[str]]:
    lines = content.decode(errors="replace").splitlines()
    if len(lines) < 2:
        return []  # Kafka creates the file empty before it first writes it.
    if lines[0] != _VERSION:
        raise Damaged(path, 0, f"version {lines[0]!r} of a checkpoint is not known")
    rows = [line.split() for line in lines[2:]]
    if lines[1] != str(len(rows)) or any(len(row) != width for row in rows):
        raise Damaged(path, 0, f"not the {lines[1]} lines of {width} words that it announces")
    numbers = 2
    if any(not word.lstrip("-").isdecimal() for row in rows for word in row[-numbers:]):
        raise Damaged(path, 0, "a word that should be a number")
    return rows


def encode_partition_metadata(topic_id: Uuid) -> bytes:
    return f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode()


def decode_partition_metadata(path: str, content: bytes) -> Uuid:
    fields = dict(
        line.partition(": ")[::2] for line in content.decode(errors="replace").splitlines()
    )
    try:
        return uuid_from_text(fields["topic_id"].strip())
    except (KeyError, ValueError) as error:
        raise Damaged(path, 0, "no topic id in it") from error


def encode_clean_shutdown(broker_epoch: int) -> bytes:
    return json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()


def decode_clean_shutdown(content: bytes) -> int | None:
    """The broker epoch under which the last process stopped cleanly; None if it does not say."""
    try:
        epoch = json.loads(content)["brokerEpoch"]
    except (ValueError, KeyError, TypeError):
        return None
    return epoch if isinstance(epoch, int) else None


def parse_properties(text: str) -> dict[str, str]:
    """Java's properties as far as Kafka's own files use them: no continued lines."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        line = line.strip()
        if line and line[0] not in "#!":
            name, _, value = line.partition("=")
            fields[name.strip()] = value.strip().replace("\\:", ":").replace("\\=", "=")
    return fields
