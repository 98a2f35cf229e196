from unittest.mock import Mock

import pytest

from ottla.broker.node import inspection
from ottla.broker.node.inspection import CoordinatorView
from ottla.groups.consumer.group import ConsumerGroup, ConsumerMember
from ottla.groups.consumer.requests import new_metadata
from ottla.groups.coordinator import GroupCoordinator
from ottla.groups.placement import OFFSETS_TOPIC
from ottla.groups.settings import GroupSettings
from ottla.model.types import TopicPartition, WallTime
from ottla.protocol.group_records import OffsetCommitValue
from ottla.simulation.history.group_history import GroupHistory
from ottla.simulation.history.history import Violation
from ottla.simulation.invariants.group_invariants import GroupInvariants, check_owners, group_limits
from ottla.simulation.plans.plan import Rates
from ottla.simulation.runs.run import World, simulate
from tests.unit.simulation.small import group_plan

TOPIC_ID = b"t" * 16


def test_a_partition_has_one_owner_even_while_it_is_revoked() -> None:
    group = ConsumerGroup("group")
    for name in ("first", "second"):
        group.members[name] = ConsumerMember(name, new_metadata())
    group.members["first"].revoking = {b"topic": {0: 1}}
    group.members["second"].assigned = {b"topic": {1: 1}}
    check_owners(group)
    group.members["second"].assigned = {b"topic": {0: 1}}
    with pytest.raises(Violation, match="G1: partition 0 in group"):
        check_owners(group)


def test_limits_are_those_of_the_broker() -> None:
    assert group_limits({}) == (3_000, 10_080 * 60_000)
    settings = {"group.initial.rebalance.delay.ms": "5", "offsets.retention.minutes": "1"}
    assert group_limits(settings) == (5, 60_000)


def test_coordinators_are_looked_at_while_a_run_goes_on() -> None:
    worlds: list[World] = []
    simulate(1, group_plan(1, Rates(clock_jump=2.0)), arrange=worlds.append)
    invariants: GroupInvariants = worlds[0].group_invariants
    assert invariants._offsets, "some offsets are there in the end"
    assert set(invariants._used_ms) == {"classic", "consumer"}


def test_only_a_coordinator_that_was_just_loaded_may_lack_an_offset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded: list[GroupCoordinator] = []
    monkeypatch.setattr(
        inspection, "coordinators", lambda _: [view_of(coordinator) for coordinator in loaded]
    )
    broker = Mock(now=0)
    broker.groups.partition_of.return_value = 0
    nodes = Mock()
    nodes.serving.return_value = []
    nodes.all = [Mock(starts=1, broker=broker)]
    nodes.all[0].clock.wall.return_value = 1_000
    invariants = GroupInvariants(nodes, GroupHistory(lambda: 0), Mock(), 0, 60_000)

    loaded = [with_offset()]
    invariants.check()
    loaded.clear()
    nodes.all[0].starts += 1
    invariants.check()  # The broker serves, and reads its log.
    loaded.append(GroupCoordinator(GroupSettings(), wall=lambda: WallTime(0), new_id=str))
    invariants.check()
    loaded = [with_offset()]
    invariants.check()
    loaded[0].offsets.clear()
    with pytest.raises(Violation, match=r"G5: .* expires, but it was committed 0 ms ago"):
        invariants.check()


@pytest.mark.parametrize(("epoch", "is_forgotten"), [(4, True), (3, False)])
def test_a_group_that_expired_in_a_cluster_begins_again_with_generation_1(
    epoch: int, is_forgotten: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = with_offset()
    coordinator.groups["group"] = Mock()
    monkeypatch.setattr(inspection, "coordinators", lambda _: [view_of(coordinator, epoch=epoch)])
    nodes, broker = Mock(is_one=False), Mock()
    broker.groups.partition_of.return_value = 0
    nodes.serving.return_value = [(1, broker)]
    metadata = Mock(committed={(TOPIC_ID, 0): Mock(leader_epoch=4)})
    history = Mock()
    invariants = GroupInvariants(nodes, history, metadata, 0, 60_000)

    invariants.check()
    coordinator.groups.clear()
    invariants.check()

    assert history.forget_group.called is is_forgotten


def view_of(coordinator: GroupCoordinator, *, epoch: int = 4) -> CoordinatorView:
    return CoordinatorView(
        0, TOPIC_ID, epoch, coordinator, committed_end=0, high_watermark=0, is_writable=True
    )


def with_offset() -> GroupCoordinator:
    coordinator = GroupCoordinator(GroupSettings(), wall=lambda: WallTime(0), new_id=str)
    value = OffsetCommitValue(5, commit_timestamp=1_000)
    coordinator.offsets["group"] = {TopicPartition("topic", 0): value}
    return coordinator


@pytest.mark.parametrize(("epoch", "is_deposed"), [(4, False), (3, True)])
def test_an_answer_is_a_deposed_coordinators_if_another_leads_in_a_later_epoch(
    epoch: int, is_deposed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = Mock(is_leader=True, topic_id=TOPIC_ID, leader_epoch=epoch)
    view.name = TopicPartition(OFFSETS_TOPIC, 0)
    monkeypatch.setattr(inspection, "partitions", lambda _: [view])
    history = GroupHistory(lambda: 7)
    metadata = Mock(committed={(TOPIC_ID, 0): Mock(leader_epoch=4)})
    GroupInvariants(Mock(), history, metadata, 0, 60_000).note_sending("node-1")
    assert (history.deposed_ns == 7) is is_deposed
