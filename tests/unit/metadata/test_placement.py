from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.metadata.cluster import Broker
from ottla.metadata.placement import place
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import NodeId


def broker(node: int, rack: str | None = None, *, fenced: bool = False) -> Broker:
    return Broker(NodeId(node), 0, bytes(16), {}, {}, rack=rack, is_fenced=fenced)


def test_leaders_are_spread_evenly() -> None:
    brokers = [broker(node) for node in range(1, 6)]
    placed = place(brokers, 100, 3, Random(7).randrange)
    leaders = Counter(replicas[0] for replicas in placed)
    assert set(leaders.values()) == {20}


def test_replicas_of_a_partition_are_in_different_racks() -> None:
    racks = ["a", "a", "b", "b", "c", "c"]
    brokers = [broker(node, rack) for node, rack in enumerate(racks)]
    for replicas in place(brokers, 60, 3, Random(7).randrange):
        assert {racks[node] for node in replicas} == {"a", "b", "c"}


def test_fewer_racks_than_replicas_still_work() -> None:
    brokers = [broker(node, "only") for node in range(3)]
    assert all(len(set(r)) == 3 for r in place(brokers, 10, 3, Random(7).randrange))


def test_a_fenced_broker_never_leads_and_is_taken_last() -> None:
    brokers = [broker(1), broker(2), broker(3, fenced=True)]
    for replicas in place(brokers, 20, 2, Random(7).randrange):
        assert set(replicas) == {1, 2}
    assert all(r[0] != 3 for r in place(brokers, 20, 3, Random(7).randrange))


@pytest.mark.parametrize(
    ("brokers", "factor", "sentence"),
    [
        ([broker(1)], 2, "cannot be reached because only 1 broker(s) are registered"),
        ([broker(1, fenced=True)], 1, "All brokers are currently fenced."),
        ([broker(1)], 0, "the replication factor must be positive"),
    ],
)
def test_what_cannot_be_placed_is_refused(
    brokers: list[Broker], factor: int, sentence: str
) -> None:
    with pytest.raises(Refusal) as refused:
        place(brokers, 1, factor, Random(7).randrange)
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
    for replicas in place(brokers, partitions, factor, Random(seed).randrange):
        assert len(replicas) == len(set(replicas)) == factor
        assert replicas[0] not in fenced
