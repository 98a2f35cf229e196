"""What must hold inside the group coordinators at every moment, looked at while a run goes on.

G1  No partition of a consumer group has two owners.
G4  A rebalance ends within its timeout.
G5  An offset expires only when it is old, and nobody in its group reads it.
G6  A coordinator answers from what is committed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.broker.node import inspection
from ottla.broker.node.broker import Broker
from ottla.groups.classic.group import ClassicGroup, ClassicState
from ottla.groups.consumer.group import ConsumerGroup, MemberState
from ottla.groups.coordinator import GroupCoordinator
from ottla.groups.placement import OFFSETS_TOPIC
from ottla.model.types import Millis, Monotonic, TopicPartition
from ottla.simulation.clients.hostile_client import TOPIC_PREFIX as HOSTILE_PREFIX
from ottla.simulation.history.group_history import GroupHistory
from ottla.simulation.history.history import Violation
from ottla.simulation.invariants.known_metadata import KnownMetadata
from ottla.simulation.world.machine import Machine
from ottla.simulation.world.nodes import Nodes

SLACK_MS = 500  # A broker may be busy, and looks at what is due once in a while.
CHANGING = (ClassicState.PREPARING_REBALANCE, ClassicState.COMPLETING_REBALANCE)


@dataclass(slots=True)
class GroupInvariants:
    nodes: Nodes
    history: GroupHistory
    metadata: KnownMetadata
    initial_delay_ms: Millis
    offsets_retention_ms: Millis
    _start: int = 0
    _coordinators: dict[int, GroupCoordinator] = field(default_factory=dict)  # As seen last.
    # Since when something that must end goes on, and until when it may.
    _deadlines: dict[tuple[str, ...], Monotonic] = field(default_factory=dict)
    _offsets: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    _in_before: dict[str, set[str]] = field(default_factory=dict)  # Who was in each group then.
    _groups: dict[str, ClassicGroup] = field(default_factory=dict)
    _used_ms: dict[str, int] = field(default_factory=dict)  # When a group last had members.
    _consumers: set[str] = field(default_factory=set)  # Groups of the new protocol.

    def note_sending(self, host: str) -> None:
        """Before a node sends: a deposed coordinator may answer from a state that is over."""
        machine = self.nodes.at(host)
        if machine is None or machine.latest is None:
            return
        for view in inspection.partitions(machine.latest):
            if view.is_leader and view.name.topic == OFFSETS_TOPIC:
                state = self.metadata.committed.get((view.topic_id, view.name.partition))
                if state is None or state.leader_epoch > view.leader_epoch:
                    self.history.deposed_ns = self.history.now_ns()

    def check(self) -> None:
        """With several nodes there is no one clock by which rebalances and offsets end."""
        for number, broker in self.nodes.serving():
            for view in inspection.coordinators(broker):
                if view.committed_end > view.high_watermark:
                    raise Violation(
                        f"G6: coordinator {view.partition} on node {number} answers from offset "
                        f"{view.committed_end}, committed up to {view.high_watermark}"
                    )
                for group in view.machine.consumers.by_id.values():
                    check_owners(group)
                if not self.nodes.is_one and self._is_current(view):
                    self._look_for_groups(broker, view.partition, view.machine)
        if self.nodes.is_one:
            self._check_times(self.machine.broker)

    def _is_current(self, view: inspection.CoordinatorView) -> bool:
        """False for a deposed coordinator, which may still have groups that are gone."""
        state = self.metadata.committed.get((view.topic_id, view.partition))
        return state is not None and state.leader_epoch == view.leader_epoch

    @property
    def machine(self) -> Machine:
        return self.nodes.all[0]

    def _check_times(self, broker: Broker | None) -> None:
        if broker is None:
            return
        if self._start != self.machine.starts:
            self._start = self.machine.starts
            self._deadlines.clear()
        going_on: dict[tuple[str, ...], Millis] = {}
        for view in inspection.coordinators(broker):
            index, coordinator, is_timed = view.partition, view.machine, view.is_writable
            is_new = self._coordinators.get(index) is not coordinator
            for group in coordinator.groups.values():
                self._consumers.discard(group.id)
                going_on |= self._rebalancing(group) if is_timed else {}
            for consumers in coordinator.consumers.by_id.values():
                self._consumers.add(consumers.id)
                going_on |= _revoking(consumers) if is_timed else {}
            self._look_at_offsets(broker, index, coordinator, is_new=is_new)
            self._look_for_groups(broker, index, coordinator)
        self._check_ends(going_on, broker.now)
        self._note_members()

    def _note_members(self) -> None:
        now_ns, wall = self.history.now_ns(), self.machine.clock.wall()
        for group, standings in self.history.standings.items():
            members = {one.name for one in standings if one.is_certainly_in(now_ns)}
            self._in_before[group] = members
            if members or group not in self._used_ms:
                self._used_ms[group] = wall

    def _rebalancing(self, group: ClassicGroup) -> dict[tuple[str, ...], Millis]:
        if group.state not in CHANGING:
            return {}
        if group.members and all(m.instance_id and not m.joining for m in group.members.values()):
            return {}  # Static members may stay away for their sessions.
        longest_ms = max(group.rebalance_timeout_ms, self.initial_delay_ms)
        if group.was_empty:
            longest_ms += self.initial_delay_ms
        return {(group.id, group.state.value, str(group.generation)): longest_ms}

    def _check_ends(self, going_on: dict[tuple[str, ...], Millis], now: Monotonic) -> None:
        deadlines = {}
        for what, longest_ms in going_on.items():
            first = Monotonic(now + longest_ms + SLACK_MS)
            # A longer timeout of a member that comes later counts as well.
            deadline = max(self._deadlines.get(what, first), Monotonic(0))
            if now > deadline:
                raise Violation(f"G4: {' '.join(what)} has not ended after {longest_ms} ms")
            deadlines[what] = deadline
        self._deadlines = deadlines

    def _look_at_offsets(
        self, broker: Broker, index: int, coordinator: GroupCoordinator, *, is_new: bool
    ) -> None:
        kept = {
            (group, place): value.commit_timestamp
            for group, committed in coordinator.offsets.items()
            for place, value in committed.items()
            if not place.topic.startswith(HOSTILE_PREFIX)  # Commits may say when they expire.
        }
        for key in [k for k in self._offsets if broker.groups.partition_of(k[0]) == index]:
            if key not in kept:
                self._gone(*key, self._offsets.pop(key), is_new=is_new)
        self._offsets |= kept

    def _look_for_groups(self, broker: Broker, index: int, coordinator: GroupCoordinator) -> None:
        """A group that expired, or was deleted, may come again with generation 1."""
        is_new = self._coordinators.get(index) is not coordinator
        self._coordinators[index] = coordinator
        here = {name for name in self._groups if broker.groups.partition_of(name) == index}
        for name in here | coordinator.groups.keys():
            group = coordinator.groups.get(name)
            is_another = not is_new and group is not self._groups.get(name)
            if name in here and (group is None or is_another):
                self.history.forget_group(name)
            if group is not None:
                self._groups[name] = group
            else:
                self._groups.pop(name, None)

    def _gone(self, group: str, place: TopicPartition, committed_ms: int, *, is_new: bool) -> None:
        """An offset is not there any more: it may be deleted, or expire.

        A new coordinator may not have it in its log: what counts then is what clients were told.
        """
        reason = self._why_not_expire(group, place, committed_ms)
        if reason is None:
            self.history.expired(group, place)
        elif not is_new and not self.history.is_deleting(group, place):
            raise Violation(f"G5: the offset of {place} in {group} expires, but {reason}")

    def _why_not_expire(self, group: str, place: TopicPartition, committed_ms: int) -> str | None:
        wall = self.machine.clock.wall()
        age_ms = wall - committed_ms
        if group not in self._consumers:  # A classic group counts from when it became empty.
            age_ms = max(age_ms, wall - self._used_ms.get(group, wall))
        if age_ms < self.offsets_retention_ms:
            return f"it was committed {wall - committed_ms} ms ago"
        now_ns = self.history.now_ns()
        for standing in self.history.standings[group]:
            was_in = standing.name in self._in_before.get(group, ())
            if was_in and standing.is_certainly_in(now_ns):
                return f"{standing.name} reads {place.topic}"
        return None


def check_owners(group: ConsumerGroup) -> None:
    owners: dict[tuple[bytes, int], str] = {}
    for member in group.members.values():
        for owned in (member.assigned, member.revoking):
            for topic, indexes in owned.items():
                for index in indexes:
                    owner = owners.setdefault((topic, index), member.id)
                    if owner != member.id:
                        raise Violation(
                            f"G1: partition {index} in {group.id} belongs to {owner} and "
                            f"{member.id}"
                        )


def _revoking(group: ConsumerGroup) -> dict[tuple[str, ...], Millis]:
    return {
        (group.id, member.id, "revokes", str(member.epoch)): member.metadata.rebalance_timeout_ms
        for member in group.members.values()
        if member.state is MemberState.UNREVOKED_PARTITIONS
    }


def group_limits(settings: Mapping[str, str]) -> tuple[Millis, Millis]:
    """How long a new group waits for members, and how long offsets are kept."""
    delay_ms = int(settings.get("group.initial.rebalance.delay.ms", "3000"))
    return delay_ms, int(settings.get("offsets.retention.minutes", "10080")) * 60_000
