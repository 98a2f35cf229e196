"""What assignors are given."""

from ottla.groups.assignors.assignment import MemberSpec


def test_a_member_is_told_by_its_instance_its_topics_and_what_it_had() -> None:
    spec = MemberSpec("one", frozenset({b"t" * 16}), frozenset({(b"t" * 16, 0)}))
    assert spec.instance_id == "one"
    assert all(topic in spec.topics for topic, _ in spec.target)
