"""The coordinators of one kind on this broker: a machine for each partition of the kind's topic.

A partition that this broker begins to lead is loaded in the background, and meanwhile answers
COORDINATOR_LOAD_IN_PROGRESS; one that it leads no longer is dropped. The topic is created when the
first coordinator is looked for.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from ottla.broker.context import BrokerContext
from ottla.broker.coordinators.machine_partition import Codec, MachinePartition
from ottla.broker.machines.answer import Answer, refused
from ottla.broker.partitions.partitions import Partitions
from ottla.groups.placement import partition_of
from ottla.model.errors import Damaged, ErrorCode, Refusal
from ottla.model.machine import StateMachine
from ottla.model.types import ZERO_UUID, Millis

if TYPE_CHECKING:
    import asyncio

    from ottla.broker.partitions.partition import Partition
    from ottla.metadata.image.delta import ImageDelta
    from ottla.protocol.messages import create_topics

logger = logging.getLogger(__name__)

RELOAD_DELAY_MS = 100
RETRY_MS = 500
CREATE_TIMEOUT_MS = 30_000

C = TypeVar("C")
R = TypeVar("R")


class TopicPlan(NamedTuple):
    """How the topic of a kind is created."""

    partitions: int
    replication_factor: int
    is_factor_set: bool  # By the operator; else fewer brokers make fewer replicas.
    configs: Mapping[str, str]


class Kind(Protocol[C, R]):
    """What coordinators of one kind have in common: topic, records, machine, its own commands."""

    @property
    def topic(self) -> str: ...

    @property
    def codec(self) -> Codec[R]: ...

    @property
    def interval_ms(self) -> Millis:
        """Between two `periodic` commands."""

    def plan(self) -> TopicPlan: ...

    def machine(self, admit: Callable[[Sequence[R]], None]) -> StateMachine[C, R, Any]:
        """A machine without any state; `admit` raises Refusal for records that cannot be now."""

    def loaded(self) -> C:
        """The first command of a machine whose log is loaded."""

    def periodic(self) -> C: ...

    def changes(self, delta: "ImageDelta") -> list[C]:
        """Tell a machine of a change of the cluster; repeated until it is not refused."""


class Coordinators(Generic[C, R]):
    def __init__(self, kind: Kind[C, R], context: BrokerContext, partitions: Partitions) -> None:
        self._kind = kind
        self._context = context
        self._partitions = partitions
        self._machines: dict[int, MachinePartition[C, R]] = {}
        self._creating: list[Callable[[], None]] = []
        self._failure_told = ""
        self._period: asyncio.TimerHandle | None = None
        self._is_running = False

    @property
    def topic(self) -> str:
        return self._kind.topic

    def start(self) -> None:
        """Load what this broker leads; from now on it follows the image."""
        self._is_running = True
        self._update()
        self._begin_period()

    def stop(self) -> None:
        self._is_running = False
        if self._period is not None:
            self._period.cancel()
        for machine in list(self._machines.values()):
            machine.drop()
        self._machines.clear()

    def image_changed(self, delta: "ImageDelta") -> None:
        topics = [*delta.deleted, *delta.created, *(after for _, after in delta.changed)]
        if any(topic.name == self.topic for topic in topics):
            self._update()
        if self._machines:
            for command in self._kind.changes(delta):
                for machine in list(self._machines.values()):
                    self._tell(machine, command)

    def partition_of(self, key: str) -> int:
        topic = self._context.image.topics_by_name.get(self.topic)
        count = len(topic.partitions) if topic else 0
        return partition_of(key, count or self._kind.plan().partitions)

    def submit(self, key: str, command: C) -> Answer[Any]:
        """Decide at the machine of `key`; refused if that is not here, or not loaded yet."""
        return self._submit(self.partition_of(key), command)

    def submit_all(self, command: C) -> list[Answer[Any]]:
        """Decide at every machine of this broker."""
        return [self._submit(index, command) for index in sorted(self._machines)]

    def create_topic(self, then: Callable[[], None]) -> None:
        """Whatever becomes of it, the image tells."""
        self._creating.append(then)
        if len(self._creating) == 1:
            self._context.spawn(self._create())

    async def _create(self) -> None:
        from ottla.protocol.messages import create_topics as wire

        plan = self._kind.plan()
        topic = wire.CreatableTopic(
            self.topic,
            plan.partitions,
            self._replication_factor(plan),
            configs=[wire.CreatableTopicConfig(*config) for config in plan.configs.items()],
        )
        request = wire.Request(topics=[topic], timeout_ms=CREATE_TIMEOUT_MS)
        try:
            answer: wire.Response = await self._context.submit(request)
        except Refusal as refusal:
            logger.debug("%s cannot be created now: %s", self.topic, refusal)
        else:
            self._tell_failure(answer.topics[0])
        self._partitions.hosting.when_hosted(self._call_creating)

    def _replication_factor(self, plan: TopicPlan) -> int:
        """As set; else the default, or as many as there are brokers if those are fewer.

        Voters count too: a cluster that has just begun is not to keep its groups' offsets on the
        first two brokers for good, because the third one was not there yet.
        """
        if plan.is_factor_set:
            return plan.replication_factor
        brokers = max(len(self._context.image.brokers), self._context.voter_count)
        return min(plan.replication_factor, brokers)

    def _call_creating(self) -> None:
        waiting, self._creating = self._creating, []
        for then in waiting:
            then()

    def _tell_failure(self, result: "create_topics.CreatableTopicResult") -> None:
        """Clients ask again and again: it is told once."""
        expected = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
        failure = "" if result.error_code in expected else result.error_message or "?"
        if failure and failure != self._failure_told:
            logger.warning("coordinators wait until %s can be created: %s", self.topic, failure)
        self._failure_told = failure

    def _submit(self, index: int, command: C) -> Answer[Any]:
        machine = self._machines.get(index)
        if machine is None or machine.partition is not self._led(index):
            return refused(Refusal(ErrorCode.NOT_COORDINATOR))
        return machine.submit(command)

    def _led(self, index: int) -> "Partition | None":
        try:
            return self._partitions.led(self.topic, ZERO_UUID, index)
        except Refusal:
            return None

    def _update(self) -> None:
        """A machine for each partition that we lead, and no other."""
        if not self._is_running:
            return
        topic = self._context.image.topics_by_name.get(self.topic)
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
        machine: MachinePartition[C, R] = MachinePartition(
            partition,
            self._kind.machine(lambda records: machine.admit(records)),
            self._kind.codec,
            self._context,
            self._partitions,
            self._lost,
        )
        self._machines[index] = machine
        if machine.is_empty:
            self._begin(machine)
        else:
            self._context.spawn(self._load_log(machine))

    async def _load_log(self, machine: MachinePartition[C, R]) -> None:
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

    def _begin(self, machine: MachinePartition[C, R]) -> None:
        machine.begin()
        machine.submit(self._kind.loaded())

    def _lost(self, machine: MachinePartition[C, R]) -> None:
        """Its append failed: forget it, and load what the log holds."""
        index = machine.partition.name.partition
        if self._machines.get(index) is machine:
            del self._machines[index]
            machine.drop()
            self._context.call_later(RELOAD_DELAY_MS, self._update)

    def _begin_period(self) -> None:
        self._period = self._context.call_later(self._kind.interval_ms, self._period_over)

    def _period_over(self) -> None:
        self._begin_period()
        self.submit_all(self._kind.periodic())

    def _tell(self, machine: MachinePartition[C, R], command: C) -> None:
        """Submit it again and again until the log takes what it leads to."""

        def told(answer: Answer[Any]) -> None:
            try:
                answer.result()
            except Refusal:
                if machine.is_loaded:
                    self._context.call_later(RETRY_MS, partial(self._tell, machine, command))

        if machine.is_loaded:
            machine.submit(command).then(told)
