"""A Fetch answer as pieces: bytes between which the log's own bytes are sent from their files.

The encoding is that of `protocol/messages/fetch.py`, which tests compare it with.
"""

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final

from ottla.broker.fetch.sessions import Wanted
from ottla.broker.wire.leader_hints import FETCH_SINCE, LeaderAndEpoch, Where
from ottla.env.files import FileRange
from ottla.env.network import Piece
from ottla.model.types import Offset
from ottla.protocol.codec import encode
from ottla.protocol.messages import fetch as wire
from ottla.protocol.varint import append_uvarint

SESSIONS_SINCE: Final = 7
FLEXIBLE_SINCE: Final = 12
TOPIC_IDS_SINCE: Final = 13

STEP: Final = 1000  # Partitions.

_FRAME_START = Struct(">ii")
_SESSION = Struct(">ihi")
_INT32 = Struct(">i")
_PARTITION_V4 = Struct(">ihqq")
_PARTITION_V5 = Struct(">ihqqq")
_ABORTED = Struct(">qq")
_BEFORE_TAGS: Final = 11  # Throttle, error, session, no topics.
_LEADER = Struct(">BBiiB")  # Tag 1, its size, leader, its epoch, no tags of its own.
_DIVERGING = Struct(">BBiqB")  # Tag 0, its size, epoch, end offset, no tags of its own.


class Fetched:
    """What one partition answers."""

    __slots__ = (
        "aborted",
        "diverging",
        "error_code",
        "high_watermark",
        "last_stable_offset",
        "leader",
        "log_start_offset",
        "preferred_read_replica",
        "records",
        "wanted",
    )

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.error_code = 0
        self.high_watermark: Offset = -1
        self.last_stable_offset: Offset = -1
        self.log_start_offset: Offset = -1
        self.records: FileRange | None = None
        self.aborted: list[tuple[int, Offset]] | None = None
        self.diverging: tuple[int, Offset] | None = None
        self.leader: LeaderAndEpoch | None = None  # Who leads, if it is not us.
        self.preferred_read_replica = -1  # Somebody nearer to the client, if not -1.


def fetch_response(
    version: int,
    correlation_id: int,
    session_id: int,
    error_code: int,
    fetched: list[Fetched],
    leaders: Sequence[Where] = (),
) -> list[Piece]:
    """The whole frame. Partitions of one topic that follow each other share its entry.

    `leaders` are those that partitions name, from version 16 on.
    """
    pieces: list[Piece] = []
    for _ in response_steps(
        pieces, version, correlation_id, session_id, error_code, fetched, leaders
    ):
        pass
    return pieces


def response_steps(
    pieces: list[Piece],
    version: int,
    correlation_id: int,
    session_id: int,
    error_code: int,
    fetched: list[Fetched],
    leaders: Sequence[Where],
) -> Iterator[None]:
    """The same in steps of some milliseconds; `pieces` are the frame after the last one."""
    is_flexible = version >= FLEXIBLE_SINCE
    out = _start(version, error_code, session_id)
    topics = _by_topic(fetched)
    _count(out, len(topics), is_flexible)
    size, left = 0, STEP
    for partitions in topics:
        _topic(out, partitions[0].wanted, version)
        _count(out, len(partitions), is_flexible)
        for partition in partitions:
            _partition(out, partition, version)
            if partition.records is not None:
                pieces += (bytes(out), partition.records)
                size += len(out) + partition.records.size
                out = bytearray()
            if is_flexible:
                out += _tags(partition)
            left -= 1
            if not left:
                left = STEP
                yield
        if is_flexible:
            out.append(0)
    if is_flexible:
        out += _endpoints(leaders) if leaders else b"\x00"
    if out:
        pieces.append(bytes(out))
    first = bytearray(pieces[0])  # type: ignore[arg-type]
    _FRAME_START.pack_into(first, 0, size + len(out) - 4, correlation_id)
    pieces[0] = bytes(first)


def _start(version: int, error_code: int, session_id: int) -> bytearray:
    out = bytearray(8)
    if version >= FLEXIBLE_SINCE:
        out.append(0)  # The response header's tags.
    if version >= SESSIONS_SINCE:
        out += _SESSION.pack(0, error_code, session_id)
    else:
        out += _INT32.pack(0)  # Never throttled so far.
    return out


def _by_topic(fetched: list[Fetched]) -> list[list[Fetched]]:
    topics: dict[tuple[str, bytes], list[Fetched]] = {}
    for partition in fetched:
        wanted = partition.wanted
        topics.setdefault((wanted.topic, wanted.topic_id), []).append(partition)
    return list(topics.values())


def _topic(out: bytearray, wanted: Wanted, version: int) -> None:
    if version >= TOPIC_IDS_SINCE:
        out += wanted.topic_id
        return
    name = wanted.topic.encode()
    if version >= FLEXIBLE_SINCE:
        append_uvarint(out, len(name) + 1)
    else:
        out += len(name).to_bytes(2, "big")
    out += name


def _partition(out: bytearray, fetched: Fetched, version: int) -> None:
    index, code = fetched.wanted.index, fetched.error_code
    if version >= 5:
        out += _PARTITION_V5.pack(
            index,
            code,
            fetched.high_watermark,
            fetched.last_stable_offset,
            fetched.log_start_offset,
        )
    else:
        out += _PARTITION_V4.pack(index, code, fetched.high_watermark, fetched.last_stable_offset)
    is_flexible = version >= FLEXIBLE_SINCE
    aborted = fetched.aborted
    _count(out, -1 if aborted is None else len(aborted), is_flexible)
    for transaction in aborted or ():
        out += _ABORTED.pack(*transaction)
        if is_flexible:
            out.append(0)
    if version >= 11:
        out += _INT32.pack(fetched.preferred_read_replica)
    _count(out, fetched.records.size if fetched.records else 0, is_flexible)


def _tags(fetched: Fetched) -> bytes:
    if fetched.diverging is None:
        leader = fetched.leader
        return b"\x00" if leader is None else b"\x01" + _LEADER.pack(1, 9, *leader, 0)
    return b"\x01" + _DIVERGING.pack(0, 13, *fetched.diverging, 0)


def _endpoints(leaders: Sequence[Where]) -> bytes:
    """One tag of the whole answer."""
    nodes = [wire.NodeEndpoint(*where) for where in leaders]
    return encode(wire.Response(node_endpoints=nodes), FETCH_SINCE)[_BEFORE_TAGS:]


def _count(out: bytearray, count: int, is_flexible: bool) -> None:
    """A length or a count; -1 stands for null."""
    if is_flexible:
        append_uvarint(out, count + 1)
    else:
        out += _INT32.pack(count)
