"""New partitions that are many at once: hosted slice by slice, while the loop serves everyone.

A few are hosted in the turn that brings them (`Partitions`). Many wait here, all: a worker makes
the files of a slice, then the loop hosts it as the image says by then, so that whatever happens to
a partition meanwhile (another leader, other replicas, its deletion) needs no order of its own.
Until its turn has come it is answered like one that is led elsewhere, which clients try again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Final, NamedTuple

from ottla.broker.context import BrokerContext
from ottla.metadata.image.cluster import Topic
from ottla.model.types import TopicPartition, Uuid

AT_ONCE_MAX: Final = 64  # New logs of one change; those of `__consumer_offsets` are 50.
SLICE: Final = 32
WAIT_SECONDS_MAX: Final = 5.0  # For an answer: then whoever asked may see for himself.

Place = tuple[Uuid, int]  # A partition, by its topic's id.


class LogFiles(NamedTuple):
    """Makes the files of logs that are to be hosted, and removes those that are not."""

    make: Callable[[Mapping[TopicPartition, Uuid]], Awaitable[None]]  # With their topics' ids.
    remove_unused: Callable[[], Awaitable[None]]


class Hosting:
    def __init__(
        self,
        context: BrokerContext,
        files: LogFiles,
        host: Callable[[Topic, dict[int, bool]], None],
        hosted: Callable[[list[Topic]], None],
    ) -> None:
        """`host` gets partitions of a topic, and if each is new; `hosted` gets whole topics."""
        self.at_once_max = AT_ONCE_MAX
        self._context = context
        self._files = files
        self._host = host
        self._hosted = hosted
        self._left = 0  # How many of this change may still be hosted at once.
        self._waiting: dict[Place, bool] = {}  # Whether it is new, in the order they came.
        self._making: set[TopicPartition] = set()  # Whose files a worker makes, or removes.
        self._then: list[Callable[[], None]] = []
        self._is_running = False

    def begin(self, new: int = 0) -> None:
        """Another change of the image begins, with so many partitions that nobody has yet.

        If some of them have to wait, all do: their turn is long enough without any file.
        """
        self._left = self.at_once_max if new <= self.at_once_max else 0

    def is_waiting(self, topic_id: Uuid, index: int) -> bool:
        return (topic_id, index) in self._waiting

    def put_off(self, topic: Topic, index: int, is_new: bool, *, at_once: bool = True) -> bool:
        """Whether a partition without a log has to wait; it does if there are too many.

        `at_once` says that its log can begin: nothing has to be written, or waited for, before.
        """
        # The files of another topic of this name may be under a worker's hands.
        is_free = TopicPartition(topic.name, index) not in self._making
        if at_once and is_free and self._left > 0:
            self._left -= 1
            return False
        self._waiting[topic.id, index] = is_new
        if not self._is_running:
            self._is_running = True
            self._context.spawn(self._run())
        return True

    def forget(self, topic_id: Uuid, index: int) -> None:
        """It is not to be hosted here any more."""
        self._waiting.pop((topic_id, index), None)

    def when_hosted(self, then: Callable[[], None]) -> None:
        """Call `then` when nothing waits any more: at once, if nothing does."""
        if self._is_running:
            self._then.append(then)
        else:
            then()

    async def wait_hosted(self, listener: str) -> None:
        """What was decided can be used, if that does not take too long.

        A broker that passed it on to the controller is not kept waiting: it has its own to host.
        """
        if listener in self._context.settings.controller_listener_names:
            return
        hosted = asyncio.Event()
        self.when_hosted(hosted.set)
        with suppress(TimeoutError):
            async with asyncio.timeout(WAIT_SECONDS_MAX):
                await hosted.wait()

    async def _run(self) -> None:
        while self._waiting:
            await self._host_slice(list(islice(self._waiting, SLICE)))
            await asyncio.sleep(0)
        self._is_running = False
        then, self._then = self._then, []
        for each in then:
            each()

    async def _host_slice(self, places: list[Place]) -> None:
        by_id = self._context.image.topics_by_id
        names = {TopicPartition(by_id[each].name, index): each for each, index in places}
        self._making = set(names)
        await self._files.make(names)
        by_topic: dict[Uuid, dict[int, bool]] = {}
        for topic_id, index in places:
            is_new = self._waiting.pop((topic_id, index), None)
            if is_new is not None:  # Else it was deleted, or moved away.
                by_topic.setdefault(topic_id, {})[index] = is_new
        topics = [self._context.image.topics_by_id[topic_id] for topic_id in by_topic]
        for topic in topics:
            self._host(topic, by_topic[topic.id])
        await self._files.remove_unused()
        self._making = set()
        unfinished = next(iter(self._waiting), (None, 0))[0]  # What comes next goes on with it.
        self._hosted([topic for topic in topics if topic.id != unfinished])
