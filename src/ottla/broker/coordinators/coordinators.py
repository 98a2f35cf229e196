"""The group coordinators of this broker: one machine for each partition of `__consumer_offsets`.

A partition that this broker begins to lead is loaded in the background, and meanwhile answers
COORDINATOR_LOAD_IN_PROGRESS; one that it leads no longer is dropped. The topic is made when the
first group is looked for.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.broker.context import BrokerContext
from ottla.broker.coordinators.machine_partition import MachinePartition
from ottla.broker.partitions.partitions import Partitions
from ottla.groups.placement import OFFSETS_TOPIC, partition_of
from ottla.model.errors import Damaged, ErrorCode, Refusal
from ottla.model.types import ZERO_UUID

if TYPE_CHECKING:
    import asyncio

    from ottla.broker.coordinators.expressions import Expressions
    from ottla.broker.partitions.partition import Partition
    from ottla.groups.coordinator import TopicsDeleted
    from ottla.groups.turn import GroupCommand
    from ottla.metadata.image.delta import ImageDelta
    from ottla.protocol.group_records import GroupRecord
    from ottla.protocol.messages import create_topics

# ruff: noqa: ANN401  Replies are of many classes.

logger = logging.getLogger(__name__)

RELOAD_DELAY_MS = 100
RETRY_MS = 500
CREATE_TIMEOUT_MS = 30_000

GroupMachine = MachinePartition["GroupCommand", "GroupRecord"]


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


class GroupCoordinators:
    def __init__(self, context: BrokerContext, partitions: Partitions) -> None:
        self._context = context
        self._partitions = partitions
        self._machines: dict[int, GroupMachine] = {}
        self._creating: list[Callable[[], None]] = []
        self._failure_told = ""
        self._expiry: asyncio.TimerHandle | None = None
        self._expressions: Expressions | None = None  # Of all machines: they share a turn.
        self._is_running = False

    def start(self) -> None:
        """Load what this broker leads; from now on it follows the image."""
        self._is_running = True
        self._update()
        self._expire_later()

    def stop(self) -> None:
        self._is_running = False
        if self._expiry is not None:
            self._expiry.cancel()
        for machine in list(self._machines.values()):
            machine.drop()
        self._machines.clear()

    def apply(self, delta: "ImageDelta") -> None:
        topics = [*delta.deleted, *delta.created, *(after for _, after in delta.changed)]
        if any(topic.name == OFFSETS_TOPIC for topic in topics):
            self._update()
        deleted = frozenset(t.name for t in delta.deleted if t.name != OFFSETS_TOPIC)
        if deleted and self._machines:
            from ottla.groups.coordinator import TopicsDeleted

            for machine in list(self._machines.values()):
                self._forget_topics(machine, TopicsDeleted(deleted))
        if topics and self._machines:
            from ottla.groups.coordinator import TopicsChanged

            self._tell_all(TopicsChanged())

    def partition_of(self, group_id: str) -> int:
        topic = self._context.image.topics_by_name.get(OFFSETS_TOPIC)
        count = len(topic.partitions) if topic else 0
        return partition_of(group_id, count or self._context.settings.offsets_topic_num_partitions)

    def ask(self, group_id: str, command: "GroupCommand", on_reply: Callable[[Any], None]) -> None:
        """Decide at the group's machine; Refusal if that is not here, or not loaded yet."""
        self._machine(self.partition_of(group_id)).submit(command, on_reply)

    def ask_all(self, command: "GroupCommand", on_replies: Callable[[list[Any]], None]) -> None:
        """Decide at every machine of this broker; Refusal if one of them is not loaded yet."""
        machines = [self._machine(index) for index in sorted(self._machines)]
        if not all(machine.is_loaded for machine in machines):
            raise Refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        replies: list[Any] = []

        def gather(reply: Any) -> None:
            replies.append(reply)
            if len(replies) == len(machines):
                on_replies(replies)

        for machine in machines:
            machine.submit(command, gather)
        if not machines:
            on_replies([])

    def create_topic(self, then: Callable[[], None]) -> None:
        """Whatever becomes of it, the image tells."""
        self._creating.append(then)
        if len(self._creating) > 1:
            return
        from ottla.protocol.messages import create_topics as wire

        settings = self._context.settings
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(settings.offsets_topic_segment_bytes),
        }
        topic = wire.CreatableTopic(
            OFFSETS_TOPIC,
            settings.offsets_topic_num_partitions,
            self._replication_factor(),
            configs=[wire.CreatableTopicConfig(*config) for config in configs.items()],
        )
        request = wire.Request(topics=[topic], timeout_ms=CREATE_TIMEOUT_MS)
        self._context.ask(request, self._created)

    def _replication_factor(self) -> int:
        """As set; else the default, or as many as there are brokers if those are fewer.

        Voters count too: a cluster that has just begun is not to keep its groups' offsets on the
        first two brokers for good, because the third one was not there yet.
        """
        wanted = self._context.settings.offsets_topic_replication_factor
        if "offsets.topic.replication.factor" in self._context.settings.static:
            return wanted
        return min(wanted, max(len(self._context.image.brokers), self._context.voter_count))

    def _created(self, answer: "create_topics.Response | Refusal") -> None:
        if not isinstance(answer, Refusal):  # That would be: no controller at the moment.
            self._tell_failure(answer.topics[0])
        self._partitions.hosting.when_hosted(self._call_creating)

    def _call_creating(self) -> None:
        waiting, self._creating = self._creating, []
        for then in waiting:
            then()

    def _tell_failure(self, result: "create_topics.CreatableTopicResult") -> None:
        """Clients ask again and again: it is told once."""
        expected = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
        failure = "" if result.error_code in expected else result.error_message or "?"
        if failure and failure != self._failure_told:
            logger.warning("groups wait until %s can be made: %s", OFFSETS_TOPIC, failure)
        self._failure_told = failure

    def _machine(self, index: int) -> GroupMachine:
        machine = self._machines.get(index)
        if machine is None or machine.partition is not self._led(index):
            raise Refusal(ErrorCode.NOT_COORDINATOR)
        return machine

    def _led(self, index: int) -> "Partition | None":
        try:
            return self._partitions.led(OFFSETS_TOPIC, ZERO_UUID, index)
        except Refusal:
            return None

    def _update(self) -> None:
        """A machine for each partition that we lead, and no other."""
        if not self._is_running:
            return
        topic = self._context.image.topics_by_name.get(OFFSETS_TOPIC)
        indexes = set(topic.partitions) if topic else set()
        for index in sorted(indexes | set(self._machines)):
            known, partition = self._machines.get(index), self._led(index)
            if known is not None and known.partition is partition:
                continue
            if known is not None:
                del self._machines[index]
                known.drop()
            if partition is not None:
                self._load(index, partition)

    def _load(self, index: int, partition: "Partition") -> None:
        from ottla.broker.coordinators.expressions import Expressions
        from ottla.broker.coordinators.group_settings import GroupTimes, group_settings
        from ottla.broker.coordinators.group_topics import ImageTopics
        from ottla.groups.coordinator import GroupCoordinator

        random, clock = self._context.env.random, self._context.env.clock
        if self._expressions is None:
            call_soon = partial(self._context.call_later, 0)
            self._expressions = Expressions(clock.monotonic, call_soon)
        coordinator = GroupCoordinator(
            group_settings(self._context.settings),
            wall=clock.wall,
            new_id=lambda: _uuid(random.randbytes),
            topics=ImageTopics(self._context),
            compile_expression=self._expressions.compile,
            consumer_times=GroupTimes(self._context),
            admit=lambda records: machine.admit(records),
        )
        machine: GroupMachine = MachinePartition(
            partition, coordinator, GroupCodec(), self._context, self._partitions, self._lost
        )
        self._machines[index] = machine
        if machine.is_empty:
            self._begin(machine)
        else:
            self._context.spawn(self._load_log(machine))

    async def _load_log(self, machine: GroupMachine) -> None:
        try:
            await machine.load()
        except Refusal as error:  # The log may be cut at its start meanwhile.
            logger.error("cannot load %s: %s", machine.partition.name, error)
            self._lost(machine)
            return
        except (OSError, Damaged) as error:
            self._lost(machine)
            self._partitions.read_failed(machine.partition, error)
            return
        if machine in self._machines.values():
            self._begin(machine)

    def _begin(self, machine: GroupMachine) -> None:
        from ottla.groups.coordinator import Loaded

        machine.begin()
        machine.submit(_command(Loaded()), lambda _: None)

    def _lost(self, machine: GroupMachine) -> None:
        """Its append failed: forget it, and load what the log holds."""
        index = machine.partition.name.partition
        if self._machines.get(index) is machine:
            del self._machines[index]
            machine.drop()
            self._context.call_later(RELOAD_DELAY_MS, self._update)

    def _expire_later(self) -> None:
        interval_ms = self._context.settings.offsets_retention_check_interval_ms
        self._expiry = self._context.call_later(interval_ms, self._expire)

    def _expire(self) -> None:
        from ottla.groups.coordinator import ExpireOffsets

        self._expire_later()
        self._tell_all(ExpireOffsets())

    def _tell_all(self, request: object) -> None:
        for machine in list(self._machines.values()):
            if machine.is_loaded:
                machine.submit(_command(request), lambda _: None)

    def _forget_topics(self, machine: GroupMachine, request: "TopicsDeleted") -> None:
        """Delete the offsets of deleted topics, again and again until the log takes that."""

        def answered(reply: Any) -> None:
            if isinstance(reply, Refusal) and machine.is_loaded:
                forget = partial(self._forget_topics, machine, request)
                self._context.call_later(RETRY_MS, forget)

        if machine.is_loaded:
            machine.submit(_command(request), answered)


def _command(request: object) -> "GroupCommand":
    from ottla.groups.turn import GroupCommand

    return GroupCommand(request, 0, "", "")


def _uuid(random_bytes: Callable[[int], bytes]) -> str:
    """A random UUID in the usual form, which ends a member id."""
    digits = bytearray(random_bytes(16))
    digits[6] = digits[6] & 0x0F | 0x40
    digits[8] = digits[8] & 0x3F | 0x80
    text = digits.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
