"""DeleteRecords: the log's start moves at once, for good, and only where that is allowed."""

import errno

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import delete_records as wire
from tests.unit.broker.requests import fetch_request, only, values_of, write
from tests.unit.broker.serving import World, serving


def before(offset: int, topic: str = "t", partition: int = 0) -> wire.Request:
    part = wire.DeleteRecordsPartition(partition, offset)
    return wire.Request([wire.DeleteRecordsTopic(topic, [part])], 1000)


def delete(world: World, offset: int, version: int = 2, **where: int | str) -> tuple[int, int]:
    part = only(world.client().ask(before(offset, **where), version))
    return part.error_code, part.low_watermark


@pytest.mark.parametrize("version", range(3))
def test_records_are_out_of_reach_at_once(version: int) -> None:
    with serving() as world:
        world.topic()
        for value in (b"a", b"b", b"c"):
            write(world, value)
        assert delete(world, 2, version) == (0, 2)
        part = only(world.client().ask(fetch_request(("t", 0, 1)), 12))
        assert part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        part = only(world.client().ask(fetch_request(("t", 0, 2)), 12))
        assert (part.log_start_offset, values_of(part.records)) == (2, [b"c"])


def test_minus_one_means_all_of_them() -> None:
    with serving() as world:
        world.topic()
        write(world, b"a", b"b")
        assert delete(world, -1) == (0, 2)
        assert write(world, b"c") == 2


def test_going_back_changes_nothing() -> None:
    with serving() as world:
        world.topic()
        write(world, b"a", b"b", b"c")
        assert delete(world, 2) == (0, 2)
        assert delete(world, 1) == (0, 2)
        assert delete(world, 2) == (0, 2)


@pytest.mark.parametrize("offset", [-2, 4, 1 << 40])
def test_offsets_that_are_not_there_are_refused(offset: int) -> None:
    with serving() as world:
        world.topic()
        write(world, b"a", b"b", b"c")
        assert delete(world, offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
        assert world.partition().log.log_start_offset == 0


def test_compacted_topics_keep_their_records() -> None:
    with serving() as world:
        world.topic("t", cleanup_policy="compact")
        assert delete(world, -1) == (ErrorCode.POLICY_VIOLATION, -1)


def test_unknown_partitions_are_refused() -> None:
    with serving() as world:
        world.topic()
        unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
        assert delete(world, 0, partition=1) == unknown
        assert delete(world, 0, topic="nobody") == unknown


def test_what_was_deleted_does_not_come_back_after_a_power_cut() -> None:
    with serving() as world:
        world.topic()
        write(world, b"a", b"b", b"c")
        world.run(world.broker._housekeeping._sync_and_checkpoint())
        assert delete(world, 2) == (0, 2)
        world.lose_power()
        assert world.partition().log.log_start_offset == 2


def test_what_cannot_be_written_down_is_not_confirmed() -> None:
    with serving() as world:
        world.topic()
        write(world, b"a", b"b", b"c")
        for _ in range(2):  # Tried again, it is out of reach already, and not yet for good.
            world.disk.fail("append", errno.ENOSPC, path_contains="log-start-offset-checkpoint")
            assert delete(world, 2) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
        assert delete(world, 2) == (0, 2)
        world.lose_power()
        assert world.partition().log.log_start_offset == 2


def test_those_who_wait_are_told_of_the_new_start() -> None:
    with serving() as world:
        world.topic()
        write(world, b"a", b"b")
        client = world.client()
        session_id = client.ask(fetch_request(("t", 0, 2), session_epoch=0), 12).session_id
        assert delete(world, 2) == (0, 2)
        answer = client.ask(fetch_request(session_id=session_id, session_epoch=1), 12)
        assert only(answer).log_start_offset == 2
