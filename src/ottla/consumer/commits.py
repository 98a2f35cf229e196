"""Commits handled offsets: periodically, and at once when a partition is revoked.

The coordinator may refuse a commit during a rebalance. Nothing is lost then: the commit is retried,
or the next owner starts at the last committed offset.
"""

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ottla.consumer.lanes import Lane, Lanes
from ottla.model.types import Offset, TopicPartition

if TYPE_CHECKING:
    import confluent_kafka

log = logging.getLogger("ottla.consumer")


class Commits:
    def __init__(
        self, consumer: "confluent_kafka.Consumer", lanes: Lanes, interval_s: float
    ) -> None:
        self._consumer = consumer
        self._lanes = lanes
        self._interval_s = interval_s
        self._due_at = 0.0

    @staticmethod
    def listener(lanes: Lanes) -> Callable[[Any, list[Any]], None]:
        """Callback of the client, called while polling, for the result of a periodic commit."""

        def answered(failure: Any, partitions: list[Any]) -> None:  # noqa: ANN401
            for item in partitions:
                if failure is None and item.error is None:
                    _note(lanes.get(TopicPartition(item.topic, item.partition)), item.offset)
            if failure is not None:
                log.info("a commit failed and is tried again: %s", failure.str())

        return answered

    def commit_if_due(self, now: float) -> None:
        if now < self._due_at:
            return
        self._due_at = now + self._interval_s
        offsets = _uncommitted(self._lanes)
        if offsets:
            self._attempt(offsets, is_awaited=False)

    def commit_now(self, lanes: Iterable[Lane]) -> None:
        """Commit the handled offsets of `lanes`, and wait for the response."""
        offsets = _uncommitted(lanes)
        if offsets:
            self._attempt(offsets, is_awaited=True)

    def commit_before(self, lane: Lane, offset: Offset) -> bool:
        """Commit up to the record about to be handled; True if the commit is certain."""
        if lane.committed_offset is not None and lane.committed_offset >= offset:
            return True  # A retry: already committed.
        return self._attempt({lane.place: offset}, is_awaited=True)

    def _attempt(self, offsets: dict[TopicPartition, Offset], *, is_awaited: bool) -> bool:
        from confluent_kafka import KafkaException
        from confluent_kafka import TopicPartition as Place

        wanted = [Place(*place, offset) for place, offset in offsets.items()]
        try:
            if not is_awaited:
                self._consumer.commit(offsets=wanted, asynchronous=True)
                return True
            answer = self._consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException as failure:
            log.info("a commit failed: %s", failure.args[0].str())
            return False
        for item in answer or ():
            if item.error is not None:
                log.info("a commit failed: %s", item.error.str())
                return False
            _note(self._lanes.get(TopicPartition(item.topic, item.partition)), item.offset)
        return True


def _uncommitted(lanes: Iterable[Lane]) -> dict[TopicPartition, Offset]:
    return {
        lane.place: lane.uncommitted_offset for lane in lanes if lane.uncommitted_offset is not None
    }


def _note(lane: Lane | None, offset: Offset) -> None:
    if lane is not None and offset > (lane.committed_offset or -1):
        lane.committed_offset = offset
