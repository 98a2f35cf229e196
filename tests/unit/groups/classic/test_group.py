"""What a classic group knows about itself."""

import pytest

from ottla.groups.classic.group import ClassicGroup, ClassicMember, ClassicState
from ottla.model.errors import ErrorCode, Refusal
from tests.unit.groups.driving import subscription


def member(
    id_: str, *protocols: str, instance: str | None = None, topic: str = "t"
) -> ClassicMember:
    offered = [(name, subscription(topic)) for name in protocols]
    return ClassicMember(id_, instance, "app", "/h", 30_000, 10_000, offered)


def group_of(*members: ClassicMember) -> ClassicGroup:
    group = ClassicGroup("g")
    for one in members:
        group.add(one, "consumer")
    return group


def test_the_protocol_that_most_prefer_among_those_all_support_wins() -> None:
    group = group_of(
        member("a", "sticky", "range"), member("b", "range", "sticky"), member("c", "range")
    )
    assert group.select_protocol() == "range"


def test_a_member_must_share_a_protocol_with_everyone() -> None:
    group = group_of(member("a", "range", "sticky"), member("b", "range"))
    assert group.supports("consumer", [("range", b"")])
    assert not group.supports("consumer", [("sticky", b"")])
    assert not group.supports("connect", [("range", b"")])


def test_an_empty_group_takes_any_protocol_but_none() -> None:
    group = ClassicGroup("g")
    assert group.supports("whatever", [("x", b"")])
    assert not group.supports("", [("x", b"")])
    assert not group.supports("whatever", [])


def test_the_first_member_leads_and_the_next_follows_it() -> None:
    group = group_of(member("a", "range"), member("b", "range"))
    assert group.leader == "a"
    group.remove("a")
    assert group.leader == "b"
    group.remove("b")
    assert group.leader is None


@pytest.mark.parametrize(
    ("member_id", "instance", "code"),
    [
        ("x", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("a", "other", ErrorCode.UNKNOWN_MEMBER_ID),
        ("x", "one", ErrorCode.FENCED_INSTANCE_ID),
    ],
)
def test_whoever_is_not_the_member_is_refused(
    member_id: str, instance: str | None, code: ErrorCode
) -> None:
    group = group_of(member("a", "range", instance="one"))
    with pytest.raises(Refusal) as refused:
        group.check_member(member_id, instance)
    assert refused.value.code == code
    assert group.check_member("a", "one").id == "a"


def test_the_topics_are_those_of_all_subscriptions() -> None:
    group = group_of(member("a", "range", topic="t"), member("b", "range", topic="u"))
    group.protocol = "range"
    assert group.subscribed_topics() == {"t", "u"}
    group.members["a"].protocols = [("range", b"\x00")]
    assert group.subscribed_topics() is None


def test_a_group_is_restored_from_its_record() -> None:
    group = group_of(member("a", "range", instance="one"), member("b", "range"))
    group.protocol, group.generation, group.state_timestamp = "range", 3, 77
    record = group.record({"a": b"first", "b": b"second"})
    loaded = ClassicGroup("g")
    loaded.restore(record)
    assert loaded.state is ClassicState.STABLE
    assert (loaded.generation, loaded.protocol, loaded.leader) == (3, "range", "a")
    assert loaded.static == {"one": "a"}
    assert [m.assignment for m in loaded.members.values()] == [b"first", b"second"]
    assert loaded.record({"a": b"first", "b": b"second"}) == record
