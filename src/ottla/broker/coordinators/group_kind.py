"""Groups as a kind of coordinators: their topic, records, machines and commands.

What they need is imported with the first of them, so that a broker starts quickly.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.broker.context import BrokerContext
from ottla.broker.coordinators.coordinators import Coordinators, TopicPlan
from ottla.groups.placement import OFFSETS_TOPIC
from ottla.model.types import Millis

if TYPE_CHECKING:
    from ottla.broker.coordinators.expressions import Expressions
    from ottla.groups.coordinator import GroupCoordinator
    from ottla.groups.turn import GroupCommand
    from ottla.metadata.image.delta import ImageDelta
    from ottla.protocol.group_records import GroupRecord

GroupCoordinators = Coordinators["GroupCommand", "GroupRecord"]


class GroupCodec:
    """Kafka's records of `__consumer_offsets`."""

    def __init__(self) -> None:
        from ottla.protocol.group_records import (
            COMMIT_KEYS,
            decode_record,
            encode_key,
            encode_value,
        )

        self.decode, self.replaced = decode_record, COMMIT_KEYS
        self._encode_key, self._encode_value = encode_key, encode_value

    def encode(self, record: "GroupRecord") -> tuple[bytes, bytes | None]:
        return self._encode_key(record.key), self._encode_value(record.value)


class GroupKind:
    topic = OFFSETS_TOPIC

    def __init__(self, context: BrokerContext) -> None:
        self._context = context
        self._expressions: Expressions | None = None  # Of all machines: they share a turn.

    @property
    def codec(self) -> GroupCodec:
        return GroupCodec()

    @property
    def interval_ms(self) -> Millis:
        return self._context.settings.offsets_retention_check_interval_ms

    def plan(self) -> TopicPlan:
        settings = self._context.settings
        return TopicPlan(
            settings.offsets_topic_num_partitions,
            settings.offsets_topic_replication_factor,
            "offsets.topic.replication.factor" in settings.static,
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(settings.offsets_topic_segment_bytes),
            },
        )

    def machine(self, admit: "Callable[[Sequence[GroupRecord]], None]") -> "GroupCoordinator":
        from ottla.broker.coordinators.expressions import Expressions
        from ottla.broker.coordinators.group_settings import GroupTimes, group_settings
        from ottla.broker.coordinators.group_topics import ImageTopics
        from ottla.groups.coordinator import GroupCoordinator

        random, clock = self._context.env.random, self._context.env.clock
        if self._expressions is None:
            call_soon = partial(self._context.call_later, 0)
            self._expressions = Expressions(clock.monotonic, call_soon)
        return GroupCoordinator(
            group_settings(self._context.settings),
            wall=clock.wall,
            new_id=lambda: _uuid(random.randbytes),
            topics=ImageTopics(self._context),
            compile_expression=self._expressions.compile,
            consumer_times=GroupTimes(self._context),
            admit=admit,
        )

    def loaded(self) -> "GroupCommand":
        from ottla.groups.coordinator import Loaded

        return _command(Loaded())

    def periodic(self) -> "GroupCommand":
        from ottla.groups.coordinator import ExpireOffsets

        return _command(ExpireOffsets())

    def changes(self, delta: "ImageDelta") -> "list[GroupCommand]":
        from ottla.groups.coordinator import TopicsChanged, TopicsDeleted

        deleted = frozenset(topic.name for topic in delta.deleted if topic.name != OFFSETS_TOPIC)
        commands = [_command(TopicsDeleted(deleted))] if deleted else []
        if delta.deleted or delta.created or delta.changed:
            commands.append(_command(TopicsChanged()))
        return commands


def _command(request: Any) -> "GroupCommand":  # noqa: ANN401
    """A command of the broker's own."""
    from ottla.groups.turn import GroupCommand

    return GroupCommand(request, 0, "", "")


def _uuid(random_bytes: Callable[[int], bytes]) -> str:
    """A random UUID in the usual form, which ends a member id."""
    digits = bytearray(random_bytes(16))
    digits[6] = digits[6] & 0x0F | 0x40
    digits[8] = digits[8] & 0x3F | 0x80
    text = digits.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
