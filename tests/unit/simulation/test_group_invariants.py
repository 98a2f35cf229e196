import pytest

from ottla.groups.consumer_group import ConsumerGroup, ConsumerMember
from ottla.groups.consumer_requests import new_metadata
from ottla.simulation.group_invariants import GroupInvariants, check_owners, group_limits
from ottla.simulation.history import Violation
from ottla.simulation.plan import Rates
from ottla.simulation.run import World, simulate
from tests.unit.simulation.small import group_plan


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
    invariants: GroupInvariants = worlds[0]._group_invariants
    assert invariants._offsets, "some offsets are there in the end"
    assert set(invariants._used_ms) == {"classic", "consumer"}
