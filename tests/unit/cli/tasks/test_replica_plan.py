"""Plans of replicas: all that is asked for, few moves, even loads, different racks."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.tasks.replica_plan import CannotPlace, Replicas, resized, spread
from ottla.model.types import NodeId, TopicPartition


def placed(*replicas: list[int]) -> Replicas:
    return {
        TopicPartition("t", index): [NodeId(node) for node in nodes]
        for index, nodes in enumerate(replicas)
    }


def racks(**names: str) -> dict[NodeId, str | None]:
    return {NodeId(int(node[1:])): name for node, name in names.items()}


def nodes(*ids: int) -> dict[NodeId, str | None]:
    return {NodeId(node): None for node in ids}


def test_even_replicas_on_allowed_brokers_stay() -> None:
    current = placed([1, 2], [2, 1])
    assert spread(current, nodes(1, 2)) == current


def test_replicas_leave_brokers_that_are_not_named() -> None:
    assert spread(placed([1, 2]), nodes(2, 3)) == placed([2, 3])


def test_new_broker_takes_its_share_and_leads() -> None:
    plan = spread(placed([1], [1], [2], [2]), nodes(1, 2, 3, 4))
    assert sorted(plan.values()) == [[1], [2], [3], [4]]


def test_racks_stay_different() -> None:
    plan = spread(placed([1, 3]), racks(n1="a", n2="a", n4="b"))
    assert plan == placed([1, 4])


def test_more_replicas_than_brokers_cannot_be_placed() -> None:
    with pytest.raises(CannotPlace, match="t-0 needs 2 brokers, and there are 1"):
        spread(placed([1, 2]), nodes(1))


def test_factor_grows_on_the_least_loaded_broker_of_another_rack() -> None:
    current = placed([1])
    loads = {NodeId(1): 1, NodeId(2): 0, NodeId(3): 9}
    where = racks(n1="a", n2="a", n3="b")
    assert resized(current, current, 2, where, loads) == placed([1, 3])
    assert resized(current, current, 2, nodes(1, 2, 3), loads) == placed([1, 2])


def test_factor_shrinks_by_replicas_out_of_sync_first_and_never_by_the_first() -> None:
    current, in_sync = placed([1, 2, 3]), placed([1, 3])
    loads = {NodeId(1): 9, NodeId(2): 1, NodeId(3): 5}
    assert resized(current, in_sync, 2, nodes(1, 2, 3), loads) == placed([1, 3])
    assert resized(current, current, 2, nodes(1, 2, 3), loads) == placed([1, 2])
    assert resized(current, current, 1, nodes(1, 2, 3), loads) == placed([1])


@given(
    current=st.lists(
        st.lists(st.integers(1, 6), min_size=1, max_size=3, unique=True), min_size=1, max_size=20
    ),
    allowed=st.sets(st.integers(1, 8), min_size=3),
)
def test_every_plan_is_complete_and_even(current: list[list[int]], allowed: set[int]) -> None:
    plan = spread(placed(*current), nodes(*allowed))
    assert [len(replicas) for replicas in plan.values()] == list(map(len, current))
    assert all(len(set(replicas)) == len(replicas) for replicas in plan.values())
    loads = Counter(dict.fromkeys(allowed, 0))
    loads.update(int(node) for replicas in plan.values() for node in replicas)
    assert set(loads) == allowed
    assert max(loads.values()) - min(loads.values()) <= 1
