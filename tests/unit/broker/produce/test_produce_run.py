"""A run takes what is plain and stops at whatever is not, which it leaves as it is."""

import pytest

from ottla.broker.produce.produce_run import RUN_REQUESTS_MAX, Prepared, place_run
from ottla.model.types import WallTime
from ottla.protocol.codec import decode, encode
from ottla.protocol.header import RequestHeader, encode_request_header
from ottla.protocol.messages import produce as wire
from ottla.records.batch import Batch
from tests.unit.broker.requests import batch, produce_request
from tests.unit.broker.serving import World, serving


def frame_of(records: bytes | bytearray, version: int, correlation_id: int) -> bytes:
    header = encode_request_header(RequestHeader(0, version, correlation_id, "a client"))
    body = header + encode(produce_request(records), version)
    return len(body).to_bytes(4, "big") + body


def prepared_for(world: World, version: int) -> Prepared:
    world.topic()
    world.client().send(produce_request(batch(b"first")), version, client_id="a client")
    world.settle()
    (prepared,) = world.broker.prepared_produces._by_prefix.values()
    return prepared


def placed_from(prepared: Prepared, world: World, data: bytes) -> tuple[int, list[bytes], int]:
    buffer = bytearray(data)
    view = memoryview(buffer)
    placed, answers, end, _ = place_run(prepared, view, 0, len(data), WallTime(world.now))
    assert bytes(buffer[end:]) == data[end:]  # What it leaves is for others to read.
    return len(placed), answers, end


@pytest.mark.parametrize("version", [3, 5, 8, 9, 12])
def test_a_run_gives_offsets_in_order_and_answers_each(version: int) -> None:
    with serving() as world:
        prepared = prepared_for(world, version)
        frames = [frame_of(batch(b"a", b"b"), version, 10 + n) for n in range(3)]
        count, answers, end = placed_from(prepared, world, b"".join(frames))
        assert (count, end) == (3, sum(map(len, frames)))
        for n, answer in enumerate(answers):
            assert int.from_bytes(answer[:4], "big") == len(answer) - 4
            assert int.from_bytes(answer[4:8], "big") == 10 + n
            body = answer[9:] if version >= 9 else answer[8:]
            result = decode(wire.Response, body, version).responses[0].partition_responses[0]
            assert (result.error_code, result.base_offset) == (0, 1 + 2 * n)


def spoiled(records: bytearray, at: int) -> bytearray:
    records[at] ^= 0x40
    return records


def claiming(count: int, codec: int = 0) -> bytearray:
    """A batch of one record that claims more."""
    data = batch(b"x", codec=codec)
    data[23:27] = (count - 1).to_bytes(4, "big")
    data[57:61] = count.to_bytes(4, "big")
    Batch(data).seal()
    return data


@pytest.mark.parametrize(
    "records",
    [
        batch(b"p", producer_id=7, producer_epoch=0, base_sequence=0),
        batch(b"c", is_control=True),
        batch(b"t", is_transactional=True, producer_id=1, producer_epoch=0, base_sequence=0),
        batch(b"a") + batch(b"b"),
        batch(b"x")[:60],
        spoiled(batch(b"crc"), -1),
        spoiled(batch(b"magic"), 16),
        spoiled(batch(b"length"), 11),
        spoiled(batch(b"base offset"), 7),
        spoiled(batch(b"count"), 60),
        spoiled(batch(b"attributes"), 22),
        batch(b"far ahead", at=1 << 50),
        claiming(10_000_000),
        claiming(10_000_000, codec=4),
    ],
)
def test_a_run_stops_before_what_is_not_plain(records: bytearray) -> None:
    with serving() as world:
        prepared = prepared_for(world, 12)
        good = frame_of(batch(b"good"), 12, 1)
        count, _, end = placed_from(prepared, world, good + frame_of(records, 12, 2) + good)
        assert (count, end) == (1, len(good))


@pytest.mark.parametrize("version", [6, 12])
def test_a_run_stops_before_a_cut_frame_and_another_kind(version: int) -> None:
    with serving() as world:
        prepared = prepared_for(world, version)
        good = frame_of(batch(b"good"), version, 1)
        for cut in range(len(good)):
            assert placed_from(prepared, world, good + good[:cut])[::2] == (1, len(good))
        other = frame_of(batch(b"good"), version - 1, 1)
        assert placed_from(prepared, world, good + other)[::2] == (1, len(good))


def test_a_run_is_bounded() -> None:
    with serving() as world:
        prepared = prepared_for(world, 12)
        good = frame_of(batch(b"good"), 12, 1)
        count, _, end = placed_from(prepared, world, good * (RUN_REQUESTS_MAX + 5))
        assert (count, end) == (RUN_REQUESTS_MAX, RUN_REQUESTS_MAX * len(good))


def test_zstd_is_plain_only_where_the_version_allows_it() -> None:
    for version, count in ((6, 0), (7, 1)):
        with serving() as world:
            prepared = prepared_for(world, version)
            frame = frame_of(batch(b"z" * 100, codec=4), version, 1)
            assert placed_from(prepared, world, frame)[0] == count


def test_a_failed_answer_keeps_its_place() -> None:
    with serving() as world:
        prepared = prepared_for(world, 12)
        frame = memoryview(bytearray(frame_of(batch(b"a"), 12, 77)))
        _, (answer,), *_ = place_run(prepared, frame, 0, len(frame), WallTime(world.now))
        failed = prepared.failed_answer(answer, 56)  # type: ignore[arg-type]
        assert failed[:8] == answer[:8]
        result = decode(wire.Response, failed[9:], 12).responses[0].partition_responses[0]
        assert (result.error_code, result.base_offset, result.log_start_offset) == (56, -1, -1)


def test_what_is_placed_is_what_the_client_sent_but_for_its_offset_and_epoch() -> None:
    with serving() as world:
        prepared = prepared_for(world, 12)
        sent = batch(b"a", b"b")
        view = memoryview(bytearray(frame_of(sent, 12, 1)))
        placed, _, _, placed_bytes = place_run(prepared, view, 0, len(view), WallTime(world.now))
        data, size, base_offset, last_offset, max_timestamp, epoch, producer_id = placed[0]
        kept, given = Batch(data), Batch(sent)
        assert bytes(data[12:16]) == epoch.to_bytes(4, "big", signed=True)
        assert bytes(data[16:]) == bytes(sent[16:])
        assert (size, base_offset, last_offset) == (len(sent), 1, 2)
        assert placed_bytes == size
        assert (max_timestamp, producer_id) == (given.max_timestamp, -1)
        assert kept.base_offset == 1
