"""Lanes: the records of a partition, in order, and the handled offset."""

import pytest

from ottla.client.message import Message
from ottla.consumer.lanes import PENDING_BYTES_MAX, PENDING_MAX, Lane, Lanes
from ottla.model.types import TopicPartition

PLACE = TopicPartition("t", 0)


def message(offset: int, value: bytes = b"v") -> Message:
    return Message("t", 0, offset, 0, False, None, value, ())


def lane_with(*offsets: int) -> Lane:
    lane = Lane(PLACE, None)
    for offset in offsets:
        lane.received(message(offset))
    return lane


def test_handled_records_are_committed_up_to_the_next_offset() -> None:
    lane = lane_with(5, 6, 9)
    task = lane.next_task(10)
    assert [item.offset for item in task.messages] == [5, 6, 9]
    task.done = 2
    lane.progress()
    assert lane.uncommitted_offset == 7
    task.done, task.is_over = 3, True
    assert lane.settle() == 0
    assert lane.uncommitted_offset == 10
    assert not lane.has_pending


def test_an_offset_is_not_committed_again_nor_lowered() -> None:
    lane = lane_with(5, 6)
    task = lane.next_task(2)
    lane.committed_offset = 7
    task.done = 1
    lane.progress()
    assert lane.uncommitted_offset is None


def test_a_lane_has_one_task_at_a_time() -> None:
    lane = lane_with(1, 2, 3)
    assert lane.is_ready(0.0)
    lane.next_task(1)
    assert not lane.is_ready(0.0)
    with pytest.raises(AssertionError):
        lane.next_task(1)


def test_a_failed_record_comes_first_again_with_its_failures_counted() -> None:
    lane = lane_with(1, 2, 3)
    task = lane.next_task(3)
    task.done, task.failures, task.failure, task.is_over = 1, 2, ValueError(), True
    assert lane.settle() == 2
    again = lane.next_task(3)
    assert [item.offset for item in again.messages] == [2, 3]
    assert again.failures == 2


def test_a_lane_waits_for_its_backoff() -> None:
    lane = lane_with(1)
    lane.ready_at = 10.0
    assert not lane.is_ready(9.9)
    assert lane.is_ready(10.0)


def test_a_lane_is_full_by_records_or_by_bytes() -> None:
    lane = lane_with(*range(PENDING_MAX))
    assert lane.is_full
    assert not lane.has_room
    heavy = Lane(PLACE, None)
    heavy.received(message(0, bytes(PENDING_BYTES_MAX)))
    assert heavy.is_full
    task = heavy.next_task(1)
    task.done = 1
    heavy.progress()
    assert heavy.has_room


def test_a_reassigned_partition_waits_for_its_earlier_task() -> None:
    lanes = Lanes()
    lanes.assigned([PLACE])
    first = lanes.get(PLACE)
    assert first is not None
    first.received(message(1))
    task = first.next_task(1)
    lanes.dropped([PLACE])
    assert lanes.get(PLACE) is None
    lanes.assigned([PLACE])
    second = lanes.get(PLACE)
    assert second is not None
    second.received(message(1))
    assert not lanes.ready(0.0)
    task.is_over = True
    assert lanes.ready(0.0) == [second]


def test_the_lane_that_waits_longest_comes_first() -> None:
    lanes = Lanes()
    places = [TopicPartition("t", index) for index in range(3)]
    lanes.assigned(places)
    for lane, ready_at in zip(lanes, (3.0, 1.0, 2.0), strict=True):
        lane.received(message(0))
        lane.ready_at = ready_at
    assert [lane.place.partition for lane in lanes.ready(5.0)] == [1, 2, 0]


def test_untake_restores_the_lane() -> None:
    lane = lane_with(1)
    lane.next_task(1)
    lane.untake()
    assert lane.is_ready(0.0)
    assert lane.uncommitted_offset is None


def test_commits_run_further_ahead_of_a_fast_handler() -> None:
    lane = Lane(PLACE, None)
    for _ in range(10):
        lane.adapt_risk(0.001, 100)
    assert lane.risked == 100
    lane.adapt_risk(0.1, 100)
    assert lane.risked == 100
    for _ in range(10):
        lane.adapt_risk(1.0, 100)
    assert lane.risked == 1
