"""Model of one partition on a few brokers with late, lost and reordered messages.

Leaders, followers and the controller are the production classes; logs, network and disks are lists.
Checked after every event: acknowledged records are on every replica that may lead; records that a
consumer saw were committed and stay; logs that agree at one offset agree below it. A `Plan` sets
sizes and event rates; with unclean elections only the last check applies.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ottla.metadata.decisions.brokers import Died
from ottla.metadata.decisions.context import ControllerSettings
from ottla.metadata.image.cluster import NO_LEADER, Broker, Partition
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Monotonic, NodeId
from ottla.protocol.messages import alter_partition
from ottla.replication.divergence import divergence
from ottla.replication.follower import Answer, Append, AskOffsets, Follower, StartAt, Truncate
from ottla.replication.leader import Assignment, Committed, Leader, ProposeIsr
from tests.unit.metadata.controller_driver import ControllerDriver

LAG_MS = 30
WIRE_MAX = 40


class Violation(AssertionError):
    """A check of the model failed."""


@dataclass(frozen=True)
class Plan:
    """Sizes, and the weights of events."""

    nodes: int = 3
    isr_min: int = 2
    is_unclean: bool = False
    wire: int = 12
    produce: int = 5
    fetch: int = 8
    read_metadata: int = 5
    consume: int = 3
    pass_time: int = 4
    crash: int = 1
    restart: int = 2
    drop: int = 1
    fail_over: int = 0
    alive_min: int = 1
    late: float = 0.3  # Share of messages that overtake others.
    # Share of responses whose file was truncated and rewritten before they were sent.
    refilled: float = 0.2
    batches_max: int = 5

    @classmethod
    def swarm(cls, random: Random) -> "Plan":
        """Random rates: with and without lag, many or few elections, with and without appends
        between.
        """
        nodes = random.choice([2, 3, 3, 3, 4])
        return cls(
            nodes=nodes,
            isr_min=random.choice([1, 2, 2]),
            is_unclean=random.random() < 0.3,
            wire=random.choice([4, 12, 36]),
            produce=random.choice([1, 2, 5, 15]),
            fetch=random.choice([2, 8, 24]),
            read_metadata=random.choice([2, 5, 15]),
            crash=random.choice([1, 3, 10]),
            restart=random.choice([2, 6, 20]),
            drop=random.choice([0, 1, 4]),
            fail_over=random.choice([0, 0, 1]),
            alive_min=random.choice([0, 1, nodes - 1]),
            late=random.choice([0, 0.3, 0.8]),
            refilled=random.choice([0, 0.2, 0.6]),
            batches_max=random.choice([1, 2, 5]),
        )


class ModelLog:
    """Records as (epoch, value), and the start offset of each epoch."""

    def __init__(self) -> None:
        self.records: list[tuple[int, int]] = []
        self.starts: list[tuple[int, int]] = []
        self.log_start_offset = 0

    @property
    def end_offset(self) -> int:
        return len(self.records)

    @property
    def last_epoch(self) -> int:
        return self.starts[-1][0] if self.starts else -1

    def begin(self, epoch: int) -> None:
        if epoch > self.last_epoch:
            while self.starts and self.starts[-1][1] >= self.end_offset:
                self.starts.pop()
            self.starts.append((epoch, self.end_offset))

    def append(self, epoch: int, value: int) -> None:
        self.begin(epoch)
        self.records.append((epoch, value))

    def truncate(self, offset: int) -> None:
        del self.records[offset:]
        while self.starts and self.starts[-1][1] >= offset:
            self.starts.pop()

    def epoch_end_offset(self, epoch: int) -> tuple[int, int]:
        if epoch < 0:
            return -1, -1
        if epoch == self.last_epoch:
            return epoch, self.end_offset
        higher = [start for known, start in self.starts if known > epoch]
        lower = [known for known, _ in self.starts if known <= epoch]
        if not higher:
            return -1, -1
        return (lower[-1], higher[0]) if lower else (epoch, higher[0])


@dataclass
class LedLog:
    """A leader's own epoch ends at its log end, even without a record."""

    log: ModelLog
    leader_epoch: int

    def epoch_end_offset(self, epoch: int) -> tuple[int, int]:
        if epoch == self.leader_epoch:
            return epoch, self.log.end_offset
        return self.log.epoch_end_offset(epoch)


@dataclass
class Fetch:
    sender: int
    receiver: int
    broker_epoch: int
    leader_epoch: int
    offset: int
    last_epoch: int


@dataclass
class Fetched:
    sender: int
    receiver: int
    asked: Fetch
    answer: Answer
    records: list[tuple[int, int]]


@dataclass
class Proposed:
    sender: int
    broker_epoch: int
    proposal: ProposeIsr


@dataclass
class Decided:
    receiver: int
    broker_epoch: int
    proposal: ProposeIsr
    answer: alter_partition.ResponsePartitionData


@dataclass
class Node:
    id: int
    log: ModelLog = field(default_factory=ModelLog)
    checkpoint: int = 0  # The high watermark on disk.
    is_alive: bool = True
    broker_epoch: int = -1
    is_registered: bool = False
    has_lost: bool = False  # It lost power, and the controller does not know it yet.
    seen: int = -1  # Number of metadata versions read.
    leader: Leader | None = None
    follower: Follower | None = None
    parked: list[tuple[int, int]] = field(default_factory=list)  # End offset and value.

    @property
    def high_watermark(self) -> int:
        role = self.leader or self.follower
        if role is None:
            return min(self.checkpoint, self.log.end_offset)
        return role.high_watermark


class Model:
    def __init__(
        self,
        seed: int,
        plan: Plan | None = None,
        *,
        leader: type[Leader] = Leader,
        follower: type[Follower] = Follower,
        parts: Callable[..., tuple[int, int] | None] = divergence,
        acks_early: bool = False,
        shows_all: bool = False,
        takes_newer_epochs: bool = False,
    ) -> None:
        """The last arguments switch on mutants: of leader and follower, or of the model's shell."""
        self.random = Random(seed)
        self.plan = plan or Plan()
        self.leader_class, self.follower_class, self.parts = leader, follower, parts
        self.acks_early, self.shows_all = acks_early, shows_all
        self.takes_newer_epochs = takes_newer_epochs
        self.has_elr = self.random.random() < 0.6 and not self.plan.is_unclean
        features = {"eligible.leader.replicas.version": 1} if self.has_elr else None
        self.deciding = ControllerDriver(
            brokers=0, features=features, settings=ControllerSettings(NodeId(9)), seed=seed
        )
        self.ids = range(1, self.plan.nodes + 1)
        self.nodes = {node: Node(node) for node in self.ids}
        self.now = Monotonic(1_000)
        self.wire: list[Any] = []
        self.history: list[tuple[Partition, dict[NodeId, Broker]]] = []
        self.acked: list[tuple[int, int]] = []  # Offset and value.
        self.shown: dict[int, int] = {}
        self.committed_end = 0  # The highest offset that any leader called committed.
        self.truncations = 0
        self.values = 0
        for node in self.nodes.values():
            self.register(node)
        self.deciding.create(
            "t",
            1,
            len(self.ids),
            min_insync_replicas=str(self.plan.isr_min),
            unclean_leader_election_enable=str(self.plan.is_unclean).lower(),
        )
        self.note()
        for node in self.nodes.values():
            self.read_metadata(node, len(self.history) - 1)

    @classmethod
    def swarm(cls, seed: int, **mistake: Any) -> "Model":  # noqa: ANN401
        """A model with a random plan."""
        return cls(seed, Plan.swarm(Random(seed * 7919 + 1)), **mistake)

    def story(self, steps: int = 400) -> None:
        self.run(steps)
        self.heal()

    @property
    def partition(self) -> Partition:
        return self.deciding.image.topics_by_name["t"].partitions[0]

    def run(self, steps: int) -> None:
        plan = self.plan
        weights: dict[Callable[[], None], int] = {
            self.step_wire: plan.wire,
            self.produce: plan.produce,
            self.fetch: plan.fetch,
            self.read_some: plan.read_metadata,
            self.consume: plan.consume,
            self.pass_time: plan.pass_time,
            self.crash: plan.crash,
            self.restart: plan.restart,
            self.drop: plan.drop,
            self.fail_over: plan.fail_over,
            self.fence_dead: 1,
            self.heartbeat: 1,
            self.tick_leaders: 1,
            self.ask_again: 1,
            self.write_checkpoint: 1,
        }
        for action in self.random.choices(list(weights), list(weights.values()), k=steps):
            action()
            self.check()

    def heal(self) -> None:
        """Heal all faults: every replica must be in sync within a bounded number of steps."""
        for _ in range(400):
            self.restart()
            self.heartbeat()
            for node in self.nodes.values():
                self.read_metadata(node, len(self.history) - 1)
            for node in self.nodes.values():
                self.fetch_from(node)
            for _ in range(100):
                if self.wire:
                    self.deliver(self.wire.pop(0))
            self.pass_time()
            self.tick_leaders()
            self.ask_again()
            self.check()
            if self.is_well():
                return
        raise Violation(f"not well after all has healed: {self.partition}")

    def is_well(self) -> bool:
        partition = self.partition
        if sorted(partition.isr) != list(self.ids) or partition.leader == NO_LEADER:
            return False
        leader = self.nodes[partition.leader]
        ends = {node.log.end_offset for node in self.nodes.values()}
        return leader.leader is not None and ends == {leader.leader.high_watermark}

    # Events.

    def produce(self) -> None:
        leading = [node for node in self.nodes.values() if node.is_alive and node.leader]
        if not leading:
            return
        node = self.random.choice(leading)
        assert node.leader is not None
        try:
            node.leader.check_enough_replicas()
        except Refusal:
            return
        self.values += 1
        node.log.append(node.leader.assignment.leader_epoch, self.values)
        end = node.log.end_offset
        node.parked.append((end, self.values))
        self.perform(node, node.leader.appended(end, self.now))
        if self.acks_early:
            self.acked.append((end - 1, self.values))

    def consume(self) -> None:
        """From leaders, and from followers too (KIP-392)."""
        for node in self.nodes.values():
            if node.is_alive and (node.leader or node.follower):
                self.consume_from(node)

    def consume_from(self, node: Node) -> None:
        end = node.log.end_offset if self.shows_all else node.high_watermark
        if self.plan.is_unclean:
            return
        if end > self.committed_end:
            raise Violation(f"{end} is shown, but only {self.committed_end} was ever committed")
        for offset in range(end):
            value = node.log.records[offset][1]
            if self.shown.setdefault(offset, value) != value:
                raise Violation(f"offset {offset} was {self.shown[offset]}, is {value}")

    def fetch(self) -> None:
        self.fetch_from(self.nodes[self.random.choice(self.ids)])

    def fetch_from(self, node: Node) -> None:
        follower = node.follower
        if not node.is_alive or follower is None or not follower.may_fetch(self.now):
            return
        if len(self.wire) > WIRE_MAX:
            self.wire.pop(self.random.randrange(len(self.wire)))
        partition, _ = self.history[node.seen]
        self.wire.append(
            Fetch(
                node.id, partition.leader, node.broker_epoch, follower.leader_epoch,
                follower.fetch_offset, follower.last_fetched_epoch,
            )
        )  # fmt: skip

    def step_wire(self) -> None:
        if self.wire:
            # Mostly in order, sometimes not at all.
            late = self.random.random() < self.plan.late
            index = self.random.randrange(len(self.wire)) if late else 0
            self.deliver(self.wire.pop(index))

    def drop(self) -> None:
        if self.wire:
            self.wire.pop(self.random.randrange(len(self.wire)))

    def pass_time(self) -> None:
        self.now = Monotonic(self.now + self.random.randrange(1, 8))

    def tick_leaders(self) -> None:
        for node in self.nodes.values():
            if node.is_alive and node.leader:
                self.perform(node, node.leader.tick(self.now))

    def ask_again(self) -> None:
        """Repeat an unanswered proposal, whether or not the first one arrived."""
        for node in self.nodes.values():
            if node.is_alive and node.leader and node.leader.pending is not None:
                code = ErrorCode.NETWORK_EXCEPTION
                self.perform(node, node.leader.isr_refused(node.leader.pending, code))

    def heartbeat(self) -> None:
        for node in self.nodes.values():
            if node.is_alive and not node.is_registered:
                self.register(node)
            elif node.is_alive:
                self.deciding.heartbeat(node.id, self.now)
                self.note()

    def fence_dead(self) -> None:
        for node in self.nodes.values():
            if not node.is_alive and self.random.random() < 0.5:
                self.deciding.ask(Died(NodeId(node.id), node.broker_epoch), self.now)
                self.note()

    def fail_over(self) -> None:
        """Elect another controller, which has received no heartbeat yet."""
        self.deciding.fail_over()

    def crash(self) -> None:
        alive = [node for node in self.nodes.values() if node.is_alive]
        if len(alive) <= self.plan.alive_min or self.random.random() < 0.5:
            return
        node = self.random.choice(alive)
        node.is_alive, node.is_registered = False, False
        node.leader = node.follower = None
        node.parked.clear()
        if self.has_elr and self.random.random() < 0.5 and self.may_lose_power(node):
            node.has_lost = True
            node.log.truncate(self.random.randrange(node.log.end_offset + 1))
            node.checkpoint = min(node.checkpoint, node.log.end_offset)

    def may_lose_power(self, node: Node) -> bool:
        """Fewer than the minimum at a time, and another eligible replica has kept everything."""
        partition = self.partition
        trusted = {*partition.isr, *partition.elr} - {node.id}
        lost = sum(other.has_lost for other in self.nodes.values())
        return lost < self.plan.isr_min - 1 and any(
            not self.nodes[other].has_lost for other in trusted
        )

    def restart(self) -> None:
        for node in self.nodes.values():
            if not node.is_alive:
                node.is_alive, node.seen = True, -1
                self.register(node)
                return

    def register(self, node: Node) -> None:
        """The controller may refuse it for a while; the broker retries."""
        self.deciding.ask(Died(NodeId(node.id), node.broker_epoch), self.now)
        # Killed on a machine that stayed up, it lost nothing and registers with its previous epoch.
        previous = -1 if node.has_lost else node.broker_epoch
        request = self.deciding.registration(node.id, previous_broker_epoch=previous)
        answer = self.deciding.ask(request, self.now)
        if not isinstance(answer, Refusal):
            node.broker_epoch = self.deciding.epochs[node.id] = answer.broker_epoch
            node.is_registered, node.has_lost = True, False
            self.deciding.heartbeat(node.id, self.now)
        self.note()

    def write_checkpoint(self) -> None:
        for node in self.nodes.values():
            if node.is_alive:
                node.checkpoint = min(node.high_watermark, node.log.end_offset)

    def read_some(self) -> None:
        node = self.nodes[self.random.choice(self.ids)]
        if node.is_alive and node.seen < len(self.history) - 1:
            self.read_metadata(node, self.random.randrange(node.seen + 1, len(self.history)))

    def note(self) -> None:
        """Snapshot of the controller's metadata."""
        if "t" not in self.deciding.image.topics_by_name:
            return
        state = (self.partition, dict(self.deciding.image.brokers))
        if not self.history or self.history[-1] != state:
            self.history.append(state)

    # Actions of brokers.

    def read_metadata(self, node: Node, index: int) -> None:
        if not node.is_alive or not node.is_registered or index <= node.seen:
            return
        node.seen = index
        partition, brokers = self.history[index]
        known = brokers.get(NodeId(node.id))
        if known is None or known.epoch < node.broker_epoch:
            return  # It has not read its own registration yet.
        if partition.leader == node.id:
            self.lead(node, partition)
        elif partition.leader == NO_LEADER:
            self.stand_by(node)
        else:
            self.follow(node, partition)

    def lead(self, node: Node, partition: Partition) -> None:
        assignment = Assignment(
            partition.leader_epoch, partition.partition_epoch, partition.replicas, partition.isr
        )
        if (
            node.leader is not None
            and node.leader.assignment.leader_epoch <= partition.leader_epoch
        ):
            node.log.begin(partition.leader_epoch)
            self.perform(node, node.leader.assigned(assignment, node.log.end_offset, self.now))
            return
        high_watermark = min(node.high_watermark, node.log.end_offset)
        node.follower = None
        node.log.begin(partition.leader_epoch)
        node.leader = self.leader_class(
            NodeId(node.id),
            assignment,
            isr_min=self.plan.isr_min,
            lag_ms_max=LAG_MS,
            log_end=node.log.end_offset,
            high_watermark=high_watermark,
            is_eligible=lambda other, epoch: self.is_eligible(node, other, epoch),
            now=self.now,
        )
        self.perform(node, node.leader.tick(self.now))

    def is_eligible(self, node: Node, other: NodeId, epoch: int) -> bool:
        broker = self.history[node.seen][1].get(other)
        return broker is not None and broker.is_active and epoch in (-1, broker.epoch)

    def stand_by(self, node: Node) -> None:
        node.checkpoint = min(node.high_watermark, node.log.end_offset)
        node.leader = node.follower = None
        node.parked.clear()

    def follow(self, node: Node, partition: Partition) -> None:
        if node.follower is not None and node.follower.leader_epoch == partition.leader_epoch:
            return
        high_watermark = min(node.high_watermark, node.log.end_offset)
        self.stand_by(node)
        node.follower = self.follower_class(
            node.log, partition.leader_epoch, high_watermark, backoff_ms=3
        )
        self.act(node, node.follower.first_action(), None)

    def perform(self, node: Node, effects: list[Any]) -> None:
        for effect in effects:
            match effect:
                case Committed():
                    self.committed_end = max(self.committed_end, effect.high_watermark)
                    done = [p for p in node.parked if p[0] <= effect.high_watermark]
                    node.parked = [p for p in node.parked if p not in done]
                    if not self.acks_early:
                        self.acked += [(end - 1, value) for end, value in done]
                case ProposeIsr():
                    self.wire.append(Proposed(node.id, node.broker_epoch, effect))

    def act(self, node: Node, action: Any, message: Fetched | None) -> None:  # noqa: ANN401
        follower = node.follower
        assert follower is not None
        match action:
            case Append():
                assert message is not None
                self.append(node, follower, message)
            case Truncate():
                self.truncations += 1
                node.log.truncate(action.offset)
                follower.truncated()
            case AskOffsets():
                leader = self.nodes[self.history[node.seen][0].leader]
                self.act(node, follower.leader_offsets(0, leader.log.end_offset, self.now), None)
            case StartAt():
                raise AssertionError("no log begins later here")

    def append(self, node: Node, follower: Follower, message: Fetched) -> None:
        """As the broker's fetcher does: no records newer than the followed epoch."""
        before = node.log.end_offset
        for epoch, value in message.records:
            if epoch > follower.leader_epoch and not self.takes_newer_epochs:
                break
            node.log.append(epoch, value)
        if node.log.end_offset > before:
            follower.appended(message.answer.high_watermark)
        else:
            follower.failed(self.now)

    # Message delivery.

    def deliver(self, message: Any) -> None:  # noqa: ANN401
        match message:
            case Fetch():
                self.fetch_arrives(message)
            case Fetched():
                self.answer_arrives(message)
            case Proposed():
                self.proposal_arrives(message)
            case Decided():
                self.decision_arrives(message)

    def fetch_arrives(self, fetch: Fetch) -> None:
        node = self.nodes.get(fetch.receiver)
        if node is None or not node.is_alive:
            return
        try:
            answer, sent = self.served(node, fetch)
        except Refusal as refusal:
            answer, sent = Answer(refusal.code, -1, -1, False), []
        self.wire.append(Fetched(node.id, fetch.sender, fetch, answer, sent))

    def served(self, node: Node, fetch: Fetch) -> tuple[Answer, list[tuple[int, int]]]:
        leader = node.leader
        if leader is None:
            raise Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        epoch = leader.assignment.leader_epoch
        if fetch.leader_epoch != epoch:
            older = fetch.leader_epoch < epoch
            code = ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH
            raise Refusal(code)
        log = node.log
        if fetch.last_epoch >= 0:
            diverging = self.parts(
                LedLog(log, epoch), fetch_offset=fetch.offset, last_fetched_epoch=fetch.last_epoch
            )
            if diverging is not None:
                return Answer(0, leader.high_watermark, 0, False, diverging), []
        if fetch.offset > log.end_offset:
            raise Refusal(ErrorCode.OFFSET_OUT_OF_RANGE)
        self.perform(
            node, leader.fetched(NodeId(fetch.sender), fetch.offset, fetch.broker_epoch, self.now)
        )
        sent = log.records[
            fetch.offset : fetch.offset + self.random.randrange(1, self.plan.batches_max + 1)
        ]
        return Answer(0, leader.high_watermark, 0, bool(sent)), sent

    def answer_arrives(self, message: Fetched) -> None:
        node, asked = self.nodes[message.receiver], message.asked
        follower = node.follower
        if not node.is_alive or follower is None or asked.broker_epoch != node.broker_epoch:
            return
        if asked.leader_epoch != follower.leader_epoch:
            return
        if message.records and self.random.random() < self.plan.refilled:
            sender = self.nodes[message.sender].log.records
            message.records = sender[asked.offset : asked.offset + len(message.records)]
        action = follower.answered(
            message.answer, asked_offset=asked.offset, asked_epoch=asked.last_epoch, now=self.now
        )
        self.act(node, action, message)

    def proposal_arrives(self, message: Proposed) -> None:
        proposal = message.proposal
        part = alter_partition.RequestPartitionData(
            0,
            proposal.leader_epoch,
            [],
            [alter_partition.BrokerState(node, epoch) for node, epoch in proposal.isr],
            0,
            proposal.partition_epoch,
        )
        topic = self.deciding.image.topics_by_name["t"].id
        request = alter_partition.Request(
            message.sender, message.broker_epoch, [alter_partition.RequestTopicData(topic, [part])]
        )
        response = self.deciding.ask(request, self.now)
        self.note()
        if isinstance(response, Refusal):
            return
        answer = response.topics[0].partitions[0]
        self.wire.append(Decided(message.sender, message.broker_epoch, proposal, answer))

    def decision_arrives(self, message: Decided) -> None:
        node, answer = self.nodes[message.receiver], message.answer
        if not node.is_alive or node.leader is None or message.broker_epoch != node.broker_epoch:
            return
        if answer.error_code:
            code = ErrorCode(answer.error_code)
            self.perform(node, node.leader.isr_refused(message.proposal, code))
            return
        replicas = node.leader.assignment.replicas
        assignment = Assignment(
            answer.leader_epoch, answer.partition_epoch, replicas, tuple(map(NodeId, answer.isr))
        )
        self.perform(node, node.leader.isr_decided(message.proposal, assignment, self.now))

    # Checks.

    def check(self) -> None:
        partition = self.partition
        members = () if self.plan.is_unclean else (*partition.isr, *partition.elr)
        for member in members:
            node = self.nodes[member]
            if node.has_lost:
                continue  # The controller removes it from the ISR when it returns.
            for offset, value in self.acked:
                if offset >= node.log.end_offset or node.log.records[offset][1] != value:
                    raise Violation(f"{value} at {offset} was acknowledged; {member} lacks it")
        for node in self.nodes.values():
            if node.is_alive and node.high_watermark > node.log.end_offset:
                raise Violation(f"the high watermark of {node.id} is past its end")
        self.check_prefixes()

    def check_prefixes(self) -> None:
        logs = [node.log.records for node in self.nodes.values()]
        for index, one in enumerate(logs):
            for other in logs[index + 1 :]:
                shared = min(len(one), len(other))
                for offset in range(shared - 1, -1, -1):
                    if one[offset][0] == other[offset][0]:
                        if one[: offset + 1] != other[: offset + 1]:
                            raise Violation("two logs agree at one place and not below it")
                        break
