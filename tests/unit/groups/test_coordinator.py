"""A whole coordinator under random members: one owner per generation, and rebalances that end."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ottla.groups.classic_group import ClassicState
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.consumer_group_records import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from ottla.protocol.group_records import (
    GroupMetadataKey,
    GroupRecord,
    LegacyOffsetCommitKey,
    OffsetCommitValue,
)
from tests.unit.groups.chaos import Chaos
from tests.unit.groups.consuming import ConsumerWorld
from tests.unit.groups.driving import (
    GROUP,
    World,
    beating,
    committed,
    joining,
    leaving,
    new_id,
    syncing,
)


def test_offsets_of_the_oldest_kafka_are_loaded() -> None:
    world = World()
    value = OffsetCommitValue(9, metadata="", commit_timestamp=world.clock.wall())
    world.log.append(GroupRecord(LegacyOffsetCommitKey(GROUP, "t", 0), value))
    world.reload()
    assert committed(world) == 9


def test_a_deleted_group_is_gone_after_loading() -> None:
    world = World()
    world.log.append(GroupRecord(GroupMetadataKey(GROUP), None))
    world.log.append(GroupRecord(ConsumerGroupMetadataKey("new"), ConsumerGroupMetadataValue(1)))
    world.reload()
    assert GROUP not in world.machine.groups


class Members(RuleBasedStateMachine):
    """Clients that do what clients do, in any order, with a coordinator that is lost at times."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.joins: dict[str, list] = {}
        self.syncs: dict[str, tuple[int, list]] = {}
        self.owners: dict[int, set[str]] = {}  # Who was told to own all, by generation.

    def members(self) -> list[str]:
        return sorted(set(self.joins) | set(self.syncs))

    @rule()
    def come(self) -> None:
        if len(self.members()) < 4:
            member = new_id(self.world)
            self.joins[member] = self.world.ask(joining(member))

    @precondition(lambda self: self.members())
    @rule(data=st.data())
    def go(self, data: st.DataObject) -> None:
        member = data.draw(st.sampled_from(self.members()))
        self.world.ask(leaving(member))
        self.joins.pop(member, None)
        self.syncs.pop(member, None)

    @precondition(lambda self: self.members())
    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        member = data.draw(st.sampled_from(self.members()))
        self.joins.pop(member, None)
        self.syncs.pop(member, None)

    @rule()
    def go_on(self) -> None:
        """Everyone acts on what it was told."""
        for member, reply in list(self.joins.items()):
            if reply:
                del self.joins[member]
                self.joined(member, reply[0])
        for member, (generation, reply) in list(self.syncs.items()):
            if reply and reply[0] is not None:
                self.synced(member, generation, reply)
            elif reply:
                code = self.world.code(beating(generation, member))
                if code:
                    self.rejoin(member)

    def joined(self, member: str, reply: object) -> None:
        if isinstance(reply, Refusal) and reply.code == ErrorCode.NOT_COORDINATOR:
            self.rejoin(member)
            return
        if isinstance(reply, Refusal) or reply.error_code:  # type: ignore[attr-defined]
            return
        generation, parts = reply.generation_id, {}  # type: ignore[attr-defined]
        if reply.leader == member:  # type: ignore[attr-defined]
            parts = {member: b"all"}
        self.syncs[member] = (generation, self.world.ask(syncing(generation, member, parts)))

    def synced(self, member: str, generation: int, reply: list) -> None:
        if isinstance(reply[0], Refusal) or reply[0].error_code:
            self.rejoin(member)
            return
        if reply[0].assignment:
            self.owners.setdefault(generation, set()).add(member)
        self.syncs[member] = (generation, [None])

    def rejoin(self, member: str) -> None:
        self.syncs.pop(member, None)
        self.joins[member] = self.world.ask(joining(member))

    @rule(seconds=st.integers(1, 40))
    def pass_time(self, seconds: int) -> None:
        self.world.pass_time(seconds * 1000)

    @rule()
    def lose_the_coordinator(self) -> None:
        self.world.reload()

    @invariant()
    def a_generation_has_one_owner(self) -> None:
        for generation, owners in self.owners.items():
            assert len(owners) == 1, f"generation {generation} belongs to {owners}"

    @invariant()
    def the_group_holds_together(self) -> None:
        group = self.world.machine.groups.get(GROUP)
        if group is None:
            return
        assert group.is_empty == (not group.members) or group.pending
        assert group.leader in group.members or not group.members
        waiting = [m for m in group.members.values() if m.joining is not None]
        assert not waiting or group.state is ClassicState.PREPARING_REBALANCE

    def teardown(self) -> None:
        """Nobody is heard of any more: every wait ends, and the group is empty."""
        self.world.pass_time(10 * 60 * 1000)
        group = self.world.machine.groups.get(GROUP)
        assert group is None or group.is_empty
        assert all(reply for reply in self.joins.values())
        assert all(reply for _, reply in self.syncs.values())


TestMembers = Members.TestCase
TestMembers.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


@pytest.mark.parametrize("seed", range(40))
def test_no_sequence_of_requests_breaks_it_and_reloading_finds_the_same(seed: int) -> None:
    world, chaos = ConsumerWorld(t=4, u=2), Chaos(seed)
    for _ in range(300):
        request = chaos.request()
        versions = getattr(type(request), "VERSIONS", range(10))
        for reply in world.ask(request, chaos.random.choice(versions)):
            chaos.learn(reply)
        if chaos.random.random() < 0.1:
            world.pass_time(chaos.random.choice([100, 6_000, 50_000]))
        if chaos.random.random() < 0.03:
            world.reload()
    offsets = {group: dict(kept) for group, kept in world.machine.offsets.items()}
    consumers = world.machine.consumers.by_id
    world.reload()
    assert world.machine.offsets == offsets
    for group_id, group in world.machine.consumers.by_id.items():
        assert (group.epoch, group.target_epoch) == (
            consumers[group_id].epoch,
            consumers[group_id].target_epoch,
        )
        assert (group.members, group.owners) == (
            consumers[group_id].members,
            consumers[group_id].owners,
        )
    assert set(world.machine.consumers.by_id) == set(consumers)
    assert not set(consumers) & set(world.machine.groups), "a group is of one kind"
