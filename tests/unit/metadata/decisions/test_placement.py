from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.metadata.decisions.placement import Placement
from ottla.metadata.image.cluster import Broker
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import NodeId


def broker(node: int, rack: str | None = None, *, fenced: bool = False) -> Broker:
    return Broker(NodeId(node), 0, bytes(16), {}, {}, rack=rack, is_fenced=fenced)


def test_leaders_are_spread_evenly() -> None:
    brokers = [broker(node) for node in range(1, 6)]
    placed = Placement(brokers, Random(7).randrange).place(100, 3)
    leaders = Counter(replicas[0] for replicas in placed)
    assert set(leaders.values()) == {20}


def test_replicas_of_a_partition_are_in_different_racks() -> None:
    racks = ["a", "a", "b", "b", "c", "c"]
    brokers = [broker(node, rack) for node, rack in enumerate(racks)]
    for replicas in Placement(brokers, Random(7).randrange).place(60, 3):
        assert {racks[node] for node in replicas} == {"a", "b", "c"}


def test_fewer_racks_than_replicas_still_work() -> None:
    brokers = [broker(node, "only") for node in range(3)]
    assert all(len(set(r)) == 3 for r in Placement(brokers, Random(7).randrange).place(10, 3))


def test_a_fenced_broker_never_leads_and_is_taken_last() -> None:
    brokers = [broker(1), broker(2), broker(3, fenced=True)]
    for replicas in Placement(brokers, Random(7).randrange).place(20, 2):
        assert set(replicas) == {1, 2}
    assert all(r[0] != 3 for r in Placement(brokers, Random(7).randrange).place(20, 3))


@pytest.mark.parametrize(
    ("brokers", "factor", "sentence"),
    [
        ([broker(1)], 2, "cannot be reached because only 1 broker(s) are registered"),
        ([broker(1, fenced=True)], 1, "All brokers are currently fenced."),
        ([broker(1)], 0, "the replication factor must be positive"),
    ],
)
def test_impossible_placements_are_refused(
    brokers: list[Broker], factor: int, sentence: str
) -> None:
    with pytest.raises(Refusal) as refused:
        Placement(brokers, Random(7).randrange).place(1, factor)
    assert refused.value.code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert sentence in (refused.value.message or "")


@given(
    st.lists(
        st.tuples(st.sampled_from([None, "a", "b", "c"]), st.booleans()), min_size=1, max_size=9
    ),
    st.integers(1, 40),
    st.integers(0, 2**32),
    st.data(),
)
def test_any_placement_is_of_distinct_brokers_led_by_an_unfenced_one(
    made: list[tuple[str | None, bool]], partitions: int, seed: int, data: st.DataObject
) -> None:
    brokers = [broker(node, rack, fenced=fenced) for node, (rack, fenced) in enumerate(made)]
    brokers.append(broker(100))
    factor = data.draw(st.integers(1, len(brokers)))
    fenced = {b.id for b in brokers if b.is_fenced}
    for replicas in Placement(brokers, Random(seed).randrange).place(partitions, factor):
        assert len(replicas) == len(set(replicas)) == factor
        assert replicas[0] not in fenced


def test_topics_that_are_placed_one_after_the_other_share_the_brokers_evenly() -> None:
    placement = Placement([broker(node) for node in range(1, 6)], Random(7).randrange)
    placed = [replicas for _ in range(50) for replicas in placement.place(1, 2)]
    assert set(Counter(replicas[0] for replicas in placed).values()) == {10}
