# ruff: noqa: ANN401  The fields of a partition are of several types.

from dataclasses import replace
from typing import Any

import pytest

from ottla.metadata.decisions.elections import (
    ElectionContext,
    NotContactedYet,
    Target,
    change_of,
    is_empty,
)
from ottla.metadata.image.cluster import NO_LEADER, RECOVERING, Partition
from ottla.model.types import NodeId
from ottla.protocol.metadata_records import PartitionChangeRecord

TOPIC = b"t" * 16


def partition(**change: Any) -> Partition:
    fields: dict[str, Any] = {
        "leader": 1, "leader_epoch": 0, "partition_epoch": 0, "replicas": (1, 2, 3),
        "isr": (1, 2, 3), "directories": (b"d" * 16,) * 3,
    }  # fmt: skip
    return Partition(**(fields | change))


def changed(
    before: Partition,
    isr: tuple[int, ...],
    alive: set[int],
    *,
    isr_min: int = 1,
    elr: bool = False,
    unclean: bool = False,
    lost: int = -1,
) -> PartitionChangeRecord | None:
    context = ElectionContext(
        may_lead=alive.__contains__,
        isr_min=isr_min,
        is_elr_enabled=elr,
        is_unclean_allowed=unclean,
        shut_down_uncleanly=NodeId(lost),
    )
    target = Target.of(before)._replace(isr=tuple(map(NodeId, isr)))
    return change_of(TOPIC, 0, before, target, context)


def test_an_isr_is_not_left_to_replicas_without_contact() -> None:
    context = ElectionContext(
        may_lead=lambda _: True, isr_min=1, is_elr_enabled=True, has_contacted={2}.__contains__
    )
    target = Target.of(partition())
    with pytest.raises(NotContactedYet):
        change_of(TOPIC, 0, partition(), target._replace(isr=(NodeId(1), NodeId(3))), context)
    assert change_of(TOPIC, 0, partition(), target._replace(isr=(NodeId(2),)), context) is not None
    assert change_of(TOPIC, 0, partition(), target._replace(isr=()), context) is not None


def test_the_last_of_an_isr_is_not_replaced_by_an_eligible_replica_that_was_not_heard() -> None:
    around = ElectionContext(
        may_lead={2}.__contains__, isr_min=2, is_elr_enabled=True, has_contacted=lambda _: False
    )
    before = partition(isr=(1,), elr=(2,))
    target = Target.of(before)._replace(isr=())
    with pytest.raises(NotContactedYet):
        change_of(TOPIC, 0, before, target, around)
    lost = replace(around, shut_down_uncleanly=NodeId(1))  # Nobody has more than the other one.
    for each in (lost, replace(around, has_contacted=lambda _: True)):
        change = change_of(TOPIC, 0, before, target, each)
        assert change is not None
        assert (change.leader, change.isr) == (2, [2])


def test_of_several_replicas_in_sync_one_that_was_heard_leads() -> None:
    around = ElectionContext(
        may_lead={2, 3}.__contains__, isr_min=1, is_elr_enabled=True, has_contacted={3}.__contains__
    )
    target = Target.of(partition())._replace(isr=(NodeId(2), NodeId(3)))
    change = change_of(TOPIC, 0, partition(), target, around)
    assert change is not None
    assert change.leader == 3


def test_a_replica_that_may_have_lost_records_leaves_an_isr_to_any_other() -> None:
    context = ElectionContext(
        may_lead=lambda _: True, isr_min=1, is_elr_enabled=True, has_contacted=lambda _: False
    )
    left = Target.of(partition())._replace(isr=(NodeId(2), NodeId(3)))
    lost = replace(context, shut_down_uncleanly=NodeId(1))
    change = change_of(TOPIC, 0, partition(), left, lost)
    assert change is not None
    assert (change.isr, change.leader) == ([2, 3], 2)
    with pytest.raises(NotContactedYet):
        change_of(TOPIC, 0, partition(), left._replace(isr=(NodeId(3),)), lost)


def test_a_reassignment_is_not_completed_in_favour_of_replicas_without_contact() -> None:
    moving = partition(removing=(1,))
    context = ElectionContext(
        may_lead=lambda _: True, isr_min=1, is_elr_enabled=True, has_contacted={1}.__contains__
    )
    assert change_of(TOPIC, 0, moving, Target.of(moving), context) is None
    asked = Target.of(partition())._replace(removing=(NodeId(1),))
    with pytest.raises(NotContactedYet):
        change_of(TOPIC, 0, partition(), asked, context)
    heard = replace(context, has_contacted=lambda _: True)
    change = change_of(TOPIC, 0, moving, Target.of(moving), heard)
    assert change is not None
    assert (change.isr, change.replicas) == ([2, 3], [2, 3])


def test_leader_elected_from_the_elr_clears_it_when_the_minimum_is_met() -> None:
    before = partition(leader=-1, isr=(), elr=(1, 2, 3))
    change = changed(before, (), {2}, elr=True, isr_min=1)
    assert change == PartitionChangeRecord(0, TOPIC, isr=[2], leader=2, eligible_leader_replicas=[])


def test_an_eligible_replica_does_not_lead_while_another_is_in_sync() -> None:
    """The ISR is a leader that acknowledged more to acks=1, and waits for a follower."""
    before = partition(leader=3, isr=(3,), elr=(1, 2))
    context = ElectionContext(
        may_lead=lambda _: True, isr_min=2, is_elr_enabled=True, is_preferred_wanted=True
    )
    assert change_of(TOPIC, 0, before, Target.of(before), context) is None
    change = changed(before, (3,), {1, 2}, elr=True, isr_min=2)
    assert change == PartitionChangeRecord(0, TOPIC, leader=NO_LEADER)


def test_a_leader_that_may_stay_stays() -> None:
    assert changed(partition(), (1, 2, 3), {1, 2, 3}) is None


def test_a_follower_that_leaves_only_shrinks_the_isr() -> None:
    change = changed(partition(), (1, 2), {1, 2})
    assert change == PartitionChangeRecord(0, TOPIC, isr=[1, 2])


def test_the_next_in_sync_replica_in_order_of_preference_leads() -> None:
    change = changed(partition(), (2, 3), {2, 3})
    assert change == PartitionChangeRecord(0, TOPIC, isr=[2, 3], leader=2)


def test_the_last_in_sync_replica_stays_in_the_isr_though_it_cannot_lead() -> None:
    change = changed(partition(isr=(1,)), (), set())
    assert change == PartitionChangeRecord(0, TOPIC, leader=-1)


def test_the_last_in_sync_replica_leads_again_when_it_returns() -> None:
    before = partition(isr=(1,), leader=NO_LEADER)
    assert changed(before, (1,), {1}) == PartitionChangeRecord(0, TOPIC, leader=1)


def test_a_replica_out_of_sync_does_not_lead() -> None:
    before = partition(isr=(1,), leader=NO_LEADER)
    assert changed(before, (1,), {2, 3}) is None


def test_a_replica_out_of_sync_leads_if_unclean_election_is_allowed() -> None:
    before = partition(isr=(1,), leader=NO_LEADER)
    change = changed(before, (1,), {2, 3}, unclean=True)
    assert change == PartitionChangeRecord(
        0, TOPIC, isr=[2], leader=2, leader_recovery_state=RECOVERING
    )


def test_with_elr_the_isr_may_become_empty_and_its_members_join_the_elr() -> None:
    change = changed(partition(isr=(1,), replicas=(1,)), (), set(), elr=True)
    assert change == PartitionChangeRecord(
        0, TOPIC, isr=[], leader=-1, eligible_leader_replicas=[1], last_known_elr=[1]
    )


def test_a_replica_of_the_elr_leads_again() -> None:
    before = partition(leader=NO_LEADER, isr=(), elr=(1, 2), last_known_elr=(1,))
    change = changed(before, (), {2}, elr=True, isr_min=2)
    assert change == PartitionChangeRecord(
        0, TOPIC, isr=[2], leader=2, eligible_leader_replicas=[1], last_known_elr=[]
    )


def test_a_replica_that_stopped_uncleanly_is_no_longer_eligible() -> None:
    before = partition(replicas=(1,), isr=(), leader=NO_LEADER, elr=(1,), last_known_elr=(1,))
    change = changed(before, (), set(), elr=True, lost=1)
    assert change == PartitionChangeRecord(0, TOPIC, eligible_leader_replicas=[])


def test_with_empty_isr_and_elr_the_last_known_leader_is_elected() -> None:
    before = partition(replicas=(1,), isr=(), leader=NO_LEADER, last_known_elr=(1,))
    change = changed(before, (), {1}, elr=True)
    assert change == PartitionChangeRecord(
        0, TOPIC, isr=[1], leader=1, leader_recovery_state=RECOVERING, last_known_elr=[]
    )


def test_an_isr_that_is_large_enough_again_clears_the_elr() -> None:
    before = partition(isr=(1,), elr=(2,))
    change = changed(before, (1, 2), {1, 2}, elr=True, isr_min=2)
    assert change == PartitionChangeRecord(0, TOPIC, isr=[1, 2], eligible_leader_replicas=[])


def test_without_the_feature_a_leftover_elr_is_cleared() -> None:
    before = partition(elr=(3,))
    change = changed(before, (1, 2, 3), {1, 2, 3})
    assert change == PartitionChangeRecord(0, TOPIC, eligible_leader_replicas=[])


def test_an_unchanged_partition_gives_no_record() -> None:
    assert is_empty(PartitionChangeRecord(0, TOPIC))
    assert not is_empty(PartitionChangeRecord(0, TOPIC, isr=[]))
    assert not is_empty(PartitionChangeRecord(0, TOPIC, leader=-1))


def moved(before: Partition, replicas: tuple[int, ...], **change: Any) -> PartitionChangeRecord:
    context = ElectionContext(
        may_lead=lambda _: True,
        isr_min=1,
        is_elr_enabled=False,
        directory_of_new=lambda node: bytes([node] * 16),
    )
    target = Target.of(before)._replace(replicas=replicas, **change)
    record = change_of(TOPIC, 0, before, target, context)
    assert record is not None
    return record


def test_a_reassignment_waits_for_its_new_replicas() -> None:
    record = moved(partition(), (2, 3, 4, 1), adding=(4,), removing=(1,))
    assert (record.replicas, record.adding_replicas, record.removing_replicas) == (
        [2, 3, 4, 1], [4], [1],
    )  # fmt: skip
    assert record.directories == [b"d" * 16, b"d" * 16, b"\4" * 16, b"d" * 16]
    assert record.leader == -2  # No new epoch: no replica left.


def test_a_reassignment_completes_when_its_replicas_are_in_sync() -> None:
    before = partition(
        replicas=(2, 3, 4, 1), isr=(1, 2, 3), adding=(4,), removing=(1,),
        directories=(b"d" * 16,) * 4,
    )  # fmt: skip
    record = moved(before, (2, 3, 4, 1), isr=(1, 2, 3, 4))
    assert (record.replicas, record.isr, record.leader) == ([2, 3, 4], [2, 3, 4], 2)
    assert (record.adding_replicas, record.removing_replicas) == ([], [])


def test_removing_a_replica_raises_the_leader_epoch() -> None:
    record = moved(partition(leader=2), (2, 3, 1), removing=(1,))
    assert (record.replicas, record.leader) == ([2, 3], 2)


def test_an_old_cluster_raises_the_epoch_when_the_isr_shrinks() -> None:
    context = ElectionContext({1, 2}.__contains__, 1, False, is_epoch_raised_by_shrinking=True)
    target = Target.of(partition())._replace(isr=(NodeId(1), NodeId(2)))
    record = change_of(TOPIC, 0, partition(), target, context)
    assert record == PartitionChangeRecord(0, TOPIC, isr=[1, 2], leader=1)


def test_the_preferred_replica_leads_where_it_can() -> None:
    context = ElectionContext({1, 2, 3}.__contains__, 1, False, is_preferred_wanted=True)
    before = partition(leader=3)
    assert change_of(TOPIC, 0, before, Target.of(before), context) == PartitionChangeRecord(
        0, TOPIC, leader=1
    )
    behind = partition(leader=3, isr=(2, 3))
    assert change_of(TOPIC, 0, behind, Target.of(behind), context) is None


def test_without_the_feature_an_empty_isr_keeps_its_eligible_replicas_until_one_leads() -> None:
    """Nothing is committed until then, and no other replica could ever lead."""
    waiting = partition(leader=NO_LEADER, isr=(), elr=(2, 3), last_known_elr=(2,))
    assert changed(waiting, (), {1}) is None
    change = changed(waiting, (), {1, 3})
    assert change is not None
    assert (change.leader, change.isr, change.eligible_leader_replicas) == (3, [3], [])


def test_without_the_feature_the_last_eligible_replica_stays() -> None:
    waiting = partition(leader=NO_LEADER, isr=(), elr=(2, 3))
    change = changed(waiting, (), {1}, lost=3)
    assert change is not None
    assert change.eligible_leader_replicas == [2]
    assert changed(waiting._replace(elr=(NodeId(2),)), (), {1}, lost=2) is None


def test_without_the_feature_an_unclean_election_ends_the_elr() -> None:
    waiting = partition(leader=NO_LEADER, isr=(), elr=(2, 3))
    change = changed(waiting, (), {1}, unclean=True)
    assert change is not None
    assert (change.leader, change.isr, change.eligible_leader_replicas) == (1, [1], [])


def test_without_the_feature_an_isr_ends_the_elr() -> None:
    change = changed(partition(isr=(1,), elr=(2,)), (1,), {1})
    assert change is not None
    assert change.eligible_leader_replicas == []
