"""The hand-written Fetch answer is what the codec would have written."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.fetch.response import Fetched, fetch_response
from ottla.broker.fetch.sessions import Wanted
from ottla.broker.wire.leader_hints import FETCH_SINCE, LeaderAndEpoch, Where
from ottla.env.files import FileRange
from ottla.model.types import NodeId
from ottla.protocol.codec import encode
from ottla.protocol.messages import fetch as wire

offsets = st.integers(-1, 2**63 - 1)


class BytesFile:
    def __init__(self, data: bytes) -> None:
        self.path, self.data, self.truncations = "memory", data, 0

    def read(self, position: int, size: int) -> bytes:
        return self.data[position : position + size]


@st.composite
def fetched_partitions(draw: st.DrawFn) -> Fetched:
    topic = draw(st.sampled_from(["a", "orders", "x" * 200]))
    wanted = Wanted(topic, topic[:1].encode() * 16, wire.FetchPartition(draw(st.integers(0, 9))))
    fetched = Fetched(wanted)
    fetched.error_code = draw(st.integers(-1, 130))
    fetched.high_watermark = draw(offsets)
    fetched.last_stable_offset = draw(offsets)
    fetched.log_start_offset = draw(offsets)
    aborted = st.lists(st.tuples(offsets, offsets), max_size=3)
    fetched.aborted = draw(st.none() | aborted)
    fetched.diverging = draw(st.none() | st.tuples(st.integers(0, 9), st.integers(0, 2**40)))
    if fetched.diverging is None and draw(st.booleans()):
        fetched.leader = LeaderAndEpoch(NodeId(draw(st.integers(0, 9))), draw(st.integers(0, 99)))
    records = draw(st.none() | st.binary(min_size=1, max_size=300))
    if records:
        fetched.records = FileRange(BytesFile(b"before" + records), 6, len(records))
    return fetched


def as_message(fetched: list[Fetched], session_id: int, version: int) -> wire.Response:
    topics: dict[str, wire.FetchableTopicResponse] = {}
    for part in fetched:
        wanted = part.wanted
        topic = topics.setdefault(
            wanted.topic, wire.FetchableTopicResponse(wanted.topic, wanted.topic_id)
        )
        data = wire.PartitionData(
            wanted.index,
            part.error_code,
            part.high_watermark,
            part.last_stable_offset,
            part.log_start_offset,
            records=part.records.read() if part.records else b"",
        )
        if part.diverging and version >= 12:
            data.diverging_epoch = wire.EpochEndOffset(*part.diverging)
        if part.leader and version >= 12:
            data.current_leader = wire.LeaderIdAndEpoch(*part.leader)
        data.aborted_transactions = (
            None
            if part.aborted is None
            else [wire.AbortedTransaction(*transaction) for transaction in part.aborted]
        )
        topic.partitions.append(data)
    return wire.Response(session_id=session_id, responses=list(topics.values()))


@given(
    st.lists(fetched_partitions(), max_size=5),
    st.sampled_from(wire.Response.VERSIONS),
    st.lists(st.builds(Where, st.integers(0, 9), st.text(), st.integers(1, 9), st.just("r"))),
)
def test_the_pieces_are_the_codecs_bytes(
    fetched: list[Fetched], version: int, leaders: list[Where]
) -> None:
    session_id = 7 if version >= 7 else 0
    leaders = leaders if version >= FETCH_SINCE else []
    pieces = fetch_response(version, 99, session_id, 0, fetched, leaders)
    frame = b"".join(p.read() if isinstance(p, FileRange) else p for p in pieces)
    header = (99).to_bytes(4, "big") + (b"\0" if version >= 12 else b"")
    message = as_message(fetched, session_id, version)
    message.node_endpoints = [wire.NodeEndpoint(*where) for where in leaders]
    body = header + encode(message, version)
    assert frame == len(body).to_bytes(4, "big") + body
