"""Polling: takes records into their lanes, and pauses partitions with a backlog.

A pause is expensive: the client drops its prefetched records. So a full lane first delays polling
for a moment, which is enough for a fast handler.
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ottla.client.message import Message
from ottla.consumer.errors import CannotConsume
from ottla.consumer.lanes import Lanes
from ottla.model.types import TopicPartition

if TYPE_CHECKING:
    import confluent_kafka

TURN_RECORDS_MAX = 1_000
HOLD_S = 0.5  # Much less than any session timeout.

log = logging.getLogger("ottla.consumer")


class Intake:
    def __init__(
        self, consumer: "confluent_kafka.Consumer", lanes: Lanes, topics: Sequence[str]
    ) -> None:
        self._consumer = consumer
        self._lanes = lanes
        self._topics = topics
        self._told: set[str] = set()

    def receive(self, wait_s: float) -> None:
        """Wait for a record, and take all that are available; polling also serves the group."""
        for _ in range(TURN_RECORDS_MAX):
            raw = self._consumer.poll(wait_s)
            if raw is None:
                return
            wait_s = 0
            failure = raw.error()
            if failure is not None:
                self._failed(failure)
                continue
            message = as_message(raw)
            lane = self._lanes.get(message.topic_partition)
            if lane is None:
                continue  # Just revoked.
            lane.received(message)
            if lane.is_full:
                return

    def regulate(self, now: float) -> bool:
        """Pause and resume partitions; False if polling must wait a moment for a full lane."""
        may_poll = True
        for lane in self._lanes:
            if lane.has_room:
                lane.held_since = None
                if lane.is_paused:
                    lane.is_paused = False
                    self._consumer.resume([_raw(lane.place)])
            elif not lane.is_paused and (lane.is_full or lane.held_since is not None):
                lane.held_since = now if lane.held_since is None else lane.held_since
                if now - lane.held_since < HOLD_S:
                    may_poll = False
                else:
                    lane.is_paused = True
                    self._consumer.pause([_raw(lane.place)])
        return may_poll

    def pause_all(self) -> None:
        places = [_raw(lane.place) for lane in self._lanes]
        if places:
            self._consumer.pause(places)

    def _failed(self, failure: "confluent_kafka.KafkaError") -> None:
        from confluent_kafka import KafkaError

        if failure.code() == KafkaError._PARTITION_EOF:
            return
        hopeless = (
            KafkaError.TOPIC_AUTHORIZATION_FAILED,
            KafkaError.GROUP_AUTHORIZATION_FAILED,
            KafkaError.INCONSISTENT_GROUP_PROTOCOL,
            KafkaError._AUTO_OFFSET_RESET,
        )
        if failure.fatal() or failure.code() in hopeless:
            raise CannotConsume(f"cannot read {', '.join(self._topics)}: {failure.str()}")
        if failure.str() not in self._told:  # The error may repeat with every poll.
            self._told.add(failure.str())
            log.warning("%s; going on", failure.str())


def as_message(raw: "confluent_kafka.Message") -> Message:
    from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME

    kind, timestamp_ms = raw.timestamp()
    headers: Any = raw.headers() or ()
    topic, partition, offset = raw.topic(), raw.partition(), raw.offset()
    assert topic is not None, "a record has a topic"
    assert partition is not None, "a record has a partition"
    assert offset is not None, "a record has an offset"
    key: Any = raw.key()
    value: Any = raw.value()
    return Message(
        topic,
        partition,
        offset,
        timestamp_ms,
        kind == TIMESTAMP_LOG_APPEND_TIME,
        key,
        value,
        tuple(headers),
    )


def _raw(place: TopicPartition) -> "confluent_kafka.TopicPartition":
    from confluent_kafka import TopicPartition as Place

    return Place(*place)
