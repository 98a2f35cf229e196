"""Members of consumer groups (KIP-848) that do what clients do."""

import re
from collections.abc import Callable, Iterable
from typing import Any

from ottla.groups.coordinator import GroupCoordinator, TopicsChanged
from ottla.groups.settings import ConsumerTimes, GroupSettings
from ottla.groups.topics import BadExpression, TopicFacts
from ottla.model.errors import Refusal
from ottla.protocol.messages import consumer_group_heartbeat as wire
from tests.unit.groups.driving import GROUP, SETTINGS, World

# ruff: noqa: ANN401  Replies are of many classes.

Owned = frozenset[tuple[str, int]]


class FixedTopics:
    def __init__(self, **sizes: int) -> None:
        self.sizes = sizes

    def named(self, name: str) -> TopicFacts | None:
        size = self.sizes.get(name)
        return None if size is None else TopicFacts(name, topic_id(name), size)

    def by_id(self, id_: bytes) -> TopicFacts | None:
        return next((f for n in self.sizes if (f := self.named(n)) and f.id == id_), None)

    def names(self) -> Iterable[str]:
        return self.sizes


def topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b"_")


def compile_expression(expression: str) -> Callable[[str], bool]:
    try:
        pattern = re.compile(expression)
    except re.error as error:
        raise BadExpression(str(error)) from error
    return lambda name: pattern.fullmatch(name) is not None


class ConsumerWorld(World):
    """Targets follow every change at once, unless the test sets other times."""

    def __init__(self, settings: GroupSettings | None = None, **sizes: int) -> None:
        self.topics = FixedTopics(**(sizes or {"t": 4}))
        self.times = ConsumerTimes(assignment_interval_ms=0)
        super().__init__(settings or SETTINGS)

    def new_machine(self) -> GroupCoordinator:
        return GroupCoordinator(
            self.settings,
            wall=self.clock.wall,
            new_id=self._new_id,
            topics=self.topics,
            compile_expression=compile_expression,
            consumer_times=lambda _: self.times,
            admit=self.admit,
        )

    def change_topics(self, **sizes: int) -> None:
        self.topics.sizes |= sizes
        self.ask(TopicsChanged())


class Consumer:
    """Heartbeats, gives up what it is asked to, takes what it is given."""

    def __init__(self, world: World, id_: str, **fields: Any) -> None:
        self.world, self.id = world, id_
        self.epoch = 0
        self.owned: Owned = frozenset()
        self.fields = {"subscribed_topic_names": ["t"]} | fields
        self.error = 0
        self.is_unsure = False  # An answer was lost: its next request says all there is to say.

    def lose_an_answer(self) -> None:
        self.world.ask(self.request(), 1)
        self.is_unsure = True

    def request(self, **fields: Any) -> wire.Request:
        request = wire.Request(GROUP, self.id, self.epoch, topic_partitions=self.reported())
        request.instance_id = self.fields.get("instance_id")
        if self.epoch == 0:
            request.topic_partitions = []
        if self.epoch == 0 or self.is_unsure:
            request.rebalance_timeout_ms = 30_000
            for name, value in self.fields.items():
                setattr(request, name, value)
        for name, value in fields.items():
            setattr(request, name, value)
        return request

    def reported(self) -> list[wire.TopicPartitions]:
        topics = sorted({topic for topic, _ in self.owned})
        return [
            wire.TopicPartitions(topic_id(t), sorted(i for o, i in self.owned if o == t))
            for t in topics
        ]

    def beat(self, **fields: Any) -> Any:
        """One heartbeat; fenced members forget all and join again with the next."""
        if self.epoch == 0:
            self.owned = frozenset()
        reply = self.world.reply(self.request(**fields), 1)
        if isinstance(reply, Refusal):
            self.error = reply.code
            self.epoch, self.owned = 0, frozenset()
            return reply
        self.error, self.epoch, self.is_unsure = 0, reply.member_epoch, False
        if reply.assignment is not None:
            self.owned = frozenset(
                (one.topic_id.rstrip(b"_").decode(), index)
                for one in reply.assignment.topic_partitions
                for index in one.partitions
            )
        return reply

    def leave(self, epoch: int = -1) -> Any:
        request = wire.Request(GROUP, self.id, epoch, self.fields.get("instance_id"))
        self.epoch, self.owned = 0, frozenset()
        return self.world.reply(request, 1)


def settle(*consumers: Consumer) -> None:
    """Heartbeats of all until nothing changes any more."""
    for _ in range(20):
        before = [(c.epoch, c.owned) for c in consumers]
        for consumer in consumers:
            consumer.beat()
        if before == [(c.epoch, c.owned) for c in consumers]:
            return
    raise AssertionError("it never settles")
