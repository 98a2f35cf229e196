"""Reads topics as a member of a group and runs a handler for each record.

One thread polls, which keeps the membership however slow the handler is; workers run the handler.
Records of a partition are handled one after the other. A partition with a backlog is paused. When a
partition is revoked, its record in progress may finish, and handled records are committed first.
"""

import logging
import random
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from ottla.client.message import Message
from ottla.consumer.commits import Commits
from ottla.consumer.dead_letter_queue import DeadLetterQueue
from ottla.consumer.errors import CannotConsume, ConsumerError, HandlerFailed
from ottla.consumer.intake import Intake
from ottla.consumer.lanes import Lane, Lanes
from ottla.consumer.settings import (
    RETRIES_DEFAULT,
    Backoff,
    Delivery,
    Settings,
    consumer_config,
    finish_s_max,
    producer_config,
)
from ottla.consumer.workers import Handler, Workers
from ottla.model.types import TopicPartition

if TYPE_CHECKING:
    import confluent_kafka

BUSY_POLL_S, IDLE_POLL_S = 0.01, 0.2
TASK_RECORDS_MAX = 500
RISKED_RECORDS_MAX = 100  # With at-most-once: records committed ahead, which a crash may lose.

log = logging.getLogger("ottla.consumer")


def consume(topics: str | Iterable[str], handler: Handler, **options: Any) -> None:  # noqa: ANN401
    """Run a handler for each record until a signal; options as for `Runner`."""
    Runner(topics, handler, **options).run()


class Runner:
    """A consumer: call `run` in any thread, `stop` from any other."""

    def __init__(
        self,
        topics: str | Iterable[str],
        handler: Handler,
        *,
        group: str,
        bootstrap_servers: str = "localhost:9092",
        delivery: str | Delivery = Delivery.AT_LEAST_ONCE,
        retries: int | None = None,
        backoff: float | Backoff = 0.5,
        dead_letters: bool | str = True,
        workers: int = 1,
        finish_s: float = 30.0,
        commit_s: float = 1.0,
        handles_signals: bool = True,
        **config: Any,  # noqa: ANN401  Whatever confluent-kafka takes.
    ) -> None:
        is_at_most_once = Delivery(delivery) is Delivery.AT_MOST_ONCE
        if retries is None:  # A retry would be a second delivery.
            retries = 0 if is_at_most_once else RETRIES_DEFAULT
        if not isinstance(backoff, Backoff):
            backoff = Backoff(backoff, max(backoff, Backoff().longest_s))
        self.settings = Settings(
            group, Delivery(delivery), retries, backoff, dead_letters, workers, finish_s, commit_s
        )
        self.topics = [topics] if isinstance(topics, str) else list(topics)
        if not self.topics:
            raise ValueError("give at least one topic")
        self._config = consumer_config(bootstrap_servers, group, config)
        self._finish_s = finish_s_max(self.settings, self._config)
        self._handles_signals = handles_signals
        self._stopping = threading.Event()
        self._hurry = threading.Event()
        self._lanes = Lanes()
        self._workers = Workers(handler, workers, retries=retries, give_up=self._give_up)
        name = getattr(handler, "__qualname__", type(handler).__qualname__)
        self._dead_letters = DeadLetterQueue(
            producer_config(self._config),
            group=group,
            handler=f"{getattr(handler, '__module__', '')}.{name}",
        )

    def stop(self) -> None:
        """Make `run` end: records in progress are finished and handled ones committed."""
        self._stopping.set()

    def run(self) -> None:
        """Handle records until `stop` or a signal; raises ConsumerError if it cannot continue."""
        consumer = _open(self._config, self._lanes)
        self._commits = Commits(consumer, self._lanes, self.settings.commit_s)
        self._intake = Intake(consumer, self._lanes, self.topics)
        self._workers.start()
        with _signals(self._signalled) if self._handles_signals else _no_signals():
            try:
                consumer.subscribe(
                    self.topics,
                    on_assign=self._assigned,
                    on_revoke=self._revoked,
                    on_lost=self._lost,
                )
                while not self._stopping.is_set():
                    self._turn()
            finally:
                self._finish()
                self._workers.stop()
                consumer.close()
                self._dead_letters.close()

    def _turn(self) -> None:
        now = time.monotonic()
        if self._intake.regulate(now):
            self._intake.receive(self._patience_s())
        else:
            self._workers.collect(BUSY_POLL_S)
        self._settle()
        self._dispatch()
        self._commits.commit_if_due(now)

    def _patience_s(self) -> float:
        if self._workers.under_way:
            return BUSY_POLL_S
        now = time.monotonic()
        waits = [lane.ready_at - now for lane in self._lanes if lane.has_pending]
        return min(max(min(waits, default=IDLE_POLL_S), BUSY_POLL_S), IDLE_POLL_S)

    def _dispatch(self) -> None:
        for lane in self._lanes.ready(time.monotonic()):
            if not self.settings.is_at_most_once:
                self._workers.begin(lane.next_task(TASK_RECORDS_MAX))
            elif self._workers.under_way < self._workers.count:
                task = lane.next_task(lane.risked)
                if self._commits.commit_before(lane, task.messages[-1].offset + 1):
                    self._workers.begin(task)
                else:
                    # The next iteration tries again, unless the partition is revoked by then.
                    lane.untake()

    def _settle(self) -> None:
        while self._workers.collect():
            pass
        for lane in self._lanes:
            if lane.task is None:
                continue
            if lane.task.is_over:
                self._settle_lane(lane)
            else:
                lane.progress()

    def _settle_lane(self, lane: Lane) -> None:
        assert lane.task is not None, "it has one"
        fatal, failure = lane.task.fatal, lane.task.failure
        lane.adapt_risk(lane.task.over_at - lane.task.begun_at, RISKED_RECORDS_MAX)
        failures = lane.settle()
        lane.ready_at = time.monotonic()
        if fatal is not None:
            raise (
                fatal
                if isinstance(fatal, ConsumerError)
                else CannotConsume(f"a worker ended with {fatal!r}")
            ) from fatal
        if failure is not None:
            wait_s = self.settings.backoff.wait_s(failures, random.random())  # noqa: S311
            lane.ready_at += wait_s
            log.warning(
                "%s: try %d of %d failed, next in %.1f s: %r",
                lane.place,
                failures,
                self.settings.retries + 1,
                wait_s,
                failure,
            )

    def _give_up(self, message: Message, error: Exception) -> None:
        """Called by a worker after the last failed attempt."""
        topic = self.settings.dead_letter_topic(message.topic)
        place = f"{message.topic}-{message.partition} at offset {message.offset}"
        if topic is not None:
            self._dead_letters.write(topic, message, error)
            log.error("%s: given up, written to %s: %r", place, topic, error)
        elif self.settings.is_at_most_once:
            log.error("%s: given up: %r", place, error)
        else:
            raise HandlerFailed(
                f"the record of {place} still fails: {error!r}; it is not committed, and is"
                " handled again by whoever reads it next"
            ) from error

    # Callbacks of the group, always called while polling.

    def _assigned(self, _consumer: object, partitions: "list[Any]") -> None:
        self._lanes.assigned(_places(partitions))

    def _revoked(self, _consumer: object, partitions: "list[Any]") -> None:
        places = _places(partitions)
        lanes = [lane for lane in map(self._lanes.get, places) if lane is not None]
        self._cancel(lanes)
        deadline = time.monotonic() + self._finish_s
        while any(lane.under_way() for lane in lanes):
            left_s = deadline - time.monotonic()
            if left_s <= 0 or self._hurry.is_set():
                break
            self._workers.collect(min(left_s, IDLE_POLL_S))
        for lane in lanes:
            if lane.task is not None:
                lane.progress()
        self._commits.commit_now(lanes)
        self._lanes.dropped(places)

    def _lost(self, _consumer: object, partitions: "list[Any]") -> None:
        places = _places(partitions)
        log.warning("lost without warning: %s", ", ".join(map(str, places)))
        for lane in map(self._lanes.get, places):
            if lane is not None and lane.task is not None:
                lane.task.is_cancelled = True
        self._lanes.dropped(places)

    def _finish(self) -> None:
        """Let tasks in progress end while still a member of the group; then commit."""
        lanes = list(self._lanes)
        self._cancel(lanes)
        self._intake.pause_all()
        deadline = time.monotonic() + self.settings.finish_s
        while any(lane.under_way() for lane in self._lanes):
            if time.monotonic() > deadline or self._hurry.is_set():
                log.warning("a record under way was left: its handler takes too long")
                break
            self._intake.receive(BUSY_POLL_S)  # Returns nothing: all partitions are paused.
            while self._workers.collect():
                pass
        for lane in self._lanes:
            if lane.task is not None:
                lane.progress()
                if lane.task.fatal is not None:
                    log.error("%s: %s", lane.place, lane.task.fatal)
        self._commits.commit_now(self._lanes)

    def _cancel(self, lanes: Sequence[Lane]) -> None:
        """Start no more records, except those already committed."""
        for lane in lanes:
            if lane.task is not None and not self.settings.is_at_most_once:
                lane.task.is_cancelled = True

    def _signalled(self) -> None:
        if self._stopping.is_set():
            self._hurry.set()  # A second signal does not wait.
        self._stopping.set()


def _open(config: dict[str, Any], lanes: Lanes) -> "confluent_kafka.Consumer":
    try:
        from confluent_kafka import Consumer, KafkaException
    except ImportError as missing:
        raise CannotConsume(
            "confluent-kafka is not installed: pip install 'ottla[consumer]'"
        ) from missing
    try:
        return Consumer({**config, "on_commit": Commits.listener(lanes)}, logger=log)
    except KafkaException as wrong:
        raise CannotConsume(f"the config is not accepted: {wrong.args[0].str()}") from wrong


def _places(partitions: "list[Any]") -> list[TopicPartition]:
    return [TopicPartition(item.topic, item.partition) for item in partitions]


@contextmanager
def _signals(act: Callable[[], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # Signal handlers work only in the main thread.
        return

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        act()

    before = {
        number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _no_signals() -> Iterator[None]:
    yield
