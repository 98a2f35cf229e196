"""Which replicas a log directory was given, by topic id: what is gone of them was removed.

The cluster's metadata cannot tell a replica whose directory somebody removed from one that was
never begun here. A line is appended once the files of a log are there, so a kill before it leaves
a log without a line, never a line without a log. Lines are not synced: after a loss of power they
prove nothing.
"""

from collections.abc import Iterable
from typing import Final

from ottla.env.disk import Disk
from ottla.model.types import Uuid, uuid_from_text, uuid_text
from ottla.storage.checkpoint import replace_file

HOSTED: Final = "ottla.replicas"

Replica = tuple[Uuid, int]  # A partition, by its topic's id.


def read_hosted(disk: Disk, path: str) -> set[Replica]:
    """What is said in the log directory `path`; lines that a kill cut off are left out."""
    file = f"{path}/{HOSTED}"
    if not disk.exists(file):
        return set()
    lines = disk.read(file).decode(errors="replace").splitlines()
    return {replica for replica in map(_parsed, lines) if replica is not None}


def note_hosted(disk: Disk, path: str, replica: Replica) -> None:
    """The files of its log are there. What a failed append left ends at our line break."""
    file = disk.open(f"{path}/{HOSTED}", create=True)
    try:
        file.append([f"\n{_line(replica)}\n".encode()])
    finally:
        file.close()


def write_hosted(disk: Disk, path: str, replicas: Iterable[Replica]) -> None:
    content = "".join(f"{_line(replica)}\n" for replica in sorted(replicas))
    replace_file(disk, f"{path}/{HOSTED}", content.encode(), sync=False)


def _line(replica: Replica) -> str:
    return f"{uuid_text(replica[0])} {replica[1]}"


def _parsed(line: str) -> Replica | None:
    topic_id, _, index = line.partition(" ")
    try:
        return (uuid_from_text(topic_id), int(index)) if index.isdecimal() else None
    except ValueError:
        return None
