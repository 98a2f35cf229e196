"""The range assignor gives stretches, the same of every topic."""

from ottla.groups.assignors.assignment import MemberSpec
from ottla.groups.assignors.range import assign_ranges

T, U = b"t" * 16, b"u" * 16


def spec(*topics: bytes, instance: str | None = None) -> MemberSpec:
    return MemberSpec(instance, frozenset(topics), frozenset())


def test_the_first_members_get_one_more() -> None:
    given = assign_ranges({"b": spec(T), "a": spec(T), "c": spec(T)}, {T: 7})
    assert {id_: sorted(i for _, i in p) for id_, p in given.items()} == {
        "a": [0, 1, 2],
        "b": [3, 4],
        "c": [5, 6],
    }


def test_topics_that_are_partitioned_alike_are_assigned_alike() -> None:
    given = assign_ranges({"a": spec(T, U), "b": spec(T, U)}, {T: 3, U: 3})
    for partitions in given.values():
        assert {i for t, i in partitions if t == T} == {i for t, i in partitions if t == U}


def test_only_readers_of_a_topic_get_it_and_static_members_come_first() -> None:
    members = {"z": spec(T, instance="1"), "a": spec(T), "b": spec(U)}
    given = assign_ranges(members, {T: 2, U: 1})
    assert given == {
        "z": frozenset({(T, 0)}),
        "a": frozenset({(T, 1)}),
        "b": frozenset({(U, 0)}),
    }


def test_more_members_than_partitions_leave_some_without() -> None:
    given = assign_ranges({"a": spec(T), "b": spec(T)}, {T: 1})
    assert given["b"] == frozenset()
