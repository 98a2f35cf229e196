"""Writes dead letters, and returns only when they are acknowledged."""

import logging
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ottla.client.message import Message
from ottla.consumer.dead_letters import headers_for
from ottla.consumer.errors import CannotDeadLetter

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Producer

POLL_S = 0.05
CREATE_S_MAX = 10.0
CLOSE_S_MAX = 10.0
BROKER_DEFAULT = -1

log = logging.getLogger("ottla.consumer")


class DeadLetterQueue:
    """One producer for all workers, created for the first dead letter."""

    def __init__(self, config: Mapping[str, Any], *, group: str, handler: str) -> None:
        self._config = dict(config)
        self._group = group
        self._handler = handler
        self._producer: Producer | None = None
        self._known: set[str] = set()
        self._lock = threading.Lock()

    def write(self, topic: str, message: Message, error: Exception) -> None:
        """Raises CannotDeadLetter if the record was not written."""
        from confluent_kafka import KafkaError, KafkaException

        producer = self._prepared(topic)
        try:
            failure = self._send(producer, topic, message, error, has_stacktrace=True)
            if failure is not None and failure.code() == KafkaError.MSG_SIZE_TOO_LARGE:
                failure = self._send(producer, topic, message, error, has_stacktrace=False)
        except (KafkaException, BufferError) as trouble:
            raise self._told(topic, message, str(trouble)) from error
        if failure is not None:
            raise self._told(topic, message, failure.str()) from error

    def close(self) -> None:
        if self._producer is not None:
            self._producer.flush(CLOSE_S_MAX)

    def _send(
        self,
        producer: "Producer",
        topic: str,
        message: Message,
        error: Exception,
        *,
        has_stacktrace: bool,
    ) -> "KafkaError | None":
        written = threading.Event()
        failures: list[KafkaError | None] = []

        def delivered(failure: "KafkaError | None", _message: object) -> None:
            failures.append(failure)
            written.set()

        headers = headers_for(
            message,
            error,
            group=self._group,
            handler=self._handler,
            has_stacktrace=has_stacktrace,
        )
        producer.produce(
            topic,
            message.value,
            message.key,
            headers=list(headers),
            timestamp=max(message.timestamp_ms, 0),  # 0: now, for a record without a timestamp.
            on_delivery=delivered,
        )
        while not written.is_set():  # The client itself fails it after message.timeout.ms.
            producer.poll(POLL_S)
        return failures[0]

    def _prepared(self, topic: str) -> "Producer":
        from confluent_kafka import Producer

        with self._lock:
            if self._producer is None:
                self._producer = Producer(self._config, logger=log)
            if topic not in self._known:
                self._create(topic)
                self._known.add(topic)
            return self._producer

    def _create(self, topic: str) -> None:
        """Create the topic if it is missing: the cluster may not auto-create topics."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

        own = {k: v for k, v in self._config.items() if k not in PRODUCER_ONLY}
        made = AdminClient(own).create_topics(
            [NewTopic(topic, num_partitions=BROKER_DEFAULT, replication_factor=BROKER_DEFAULT)],
            operation_timeout=CREATE_S_MAX,
        )
        try:
            made[topic].result(CREATE_S_MAX)
        except (KafkaException, TimeoutError):
            return  # It exists already, or the write will report the problem.

    def _told(self, topic: str, message: Message, why: str) -> CannotDeadLetter:
        place = f"{message.topic}-{message.partition} at offset {message.offset}"
        return CannotDeadLetter(
            f"the record of {place} failed and could not be written to {topic}: {why};"
            " it is not committed, and is handled again by whoever reads it next"
        )


PRODUCER_ONLY = ("enable.idempotence", "linger.ms", "message.timeout.ms", "message.max.bytes")
