"""The uniform assignor is fair, complete, and moves as little as it can."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.groups.assignors.assignment import MemberSpec, Partitions
from ottla.groups.assignors.uniform import assign_uniformly

TOPICS = [bytes([n]) * 16 for n in range(3)]
Subscriptions = st.dictionaries(
    st.sampled_from("abcdef"), st.frozensets(st.sampled_from(TOPICS)), min_size=1
)
Sizes = st.fixed_dictionaries({topic: st.integers(0, 7) for topic in TOPICS})


def specs(
    topics: dict[str, frozenset[bytes]], had: dict[str, Partitions] | None = None
) -> dict[str, MemberSpec]:
    none: Partitions = frozenset()
    return {id_: MemberSpec(None, t, (had or {}).get(id_, none)) for id_, t in topics.items()}


def check(topics: dict[str, frozenset[bytes]], sizes: dict[bytes, int],
          result: dict[str, Partitions]) -> None:  # fmt: skip
    read = {t for mine in topics.values() for t in mine}
    every = [p for partitions in result.values() for p in partitions]
    assert len(every) == len(set(every)), "a partition has one owner"
    assert set(every) == {(t, i) for t in read for i in range(sizes[t])}
    for id_, partitions in result.items():
        assert {t for t, _ in partitions} <= topics[id_]
        for other, theirs in result.items():
            if {t for t, _ in partitions} & topics[other]:
                assert len(partitions) <= len(theirs) + 1, "nobody has what another could need"


@given(topics=Subscriptions, sizes=Sizes)
def test_it_is_complete_and_fair(
    topics: dict[str, frozenset[bytes]], sizes: dict[bytes, int]
) -> None:
    check(topics, sizes, assign_uniformly(specs(topics), sizes))


@given(before=Subscriptions, after=Subscriptions, sizes=Sizes, grown=Sizes)
def test_it_stays_so_when_members_and_topics_change(
    before: dict[str, frozenset[bytes]],
    after: dict[str, frozenset[bytes]],
    sizes: dict[bytes, int],
    grown: dict[bytes, int],
) -> None:
    had = assign_uniformly(specs(before), sizes)
    check(after, grown, assign_uniformly(specs(after, had), grown))


@given(topics=Subscriptions, sizes=Sizes)
def test_what_need_not_move_does_not(
    topics: dict[str, frozenset[bytes]], sizes: dict[bytes, int]
) -> None:
    had = assign_uniformly(specs(topics), sizes)
    assert assign_uniformly(specs(topics, had), sizes) == had


def test_a_newcomer_takes_only_its_share() -> None:
    every = frozenset(TOPICS[:1])
    had = assign_uniformly(specs({"a": every, "b": every}), {TOPICS[0]: 6})
    now = assign_uniformly(specs({"a": every, "b": every, "c": every}, had), {TOPICS[0]: 6})
    assert [len(now[id_]) for id_ in "abc"] == [2, 2, 2]
    assert now["a"] < had["a"]
    assert now["b"] < had["b"]


def test_nobody_gets_nothing() -> None:
    assert assign_uniformly({}, {TOPICS[0]: 3}) == {}
