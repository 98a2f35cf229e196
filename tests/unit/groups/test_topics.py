"""What coordinators know of topics."""

import pytest

from ottla.groups.topics import BadExpression, NoTopics, TopicFacts, metadata_hash, no_expressions


def test_the_hash_tells_every_change_and_not_the_order() -> None:
    t, u = TopicFacts("t", b"t" * 16, 3), TopicFacts("u", b"u" * 16, 3)
    assert metadata_hash([t, u]) == metadata_hash([u, t])
    others = [[t], [u], [t, u._replace(partitions=4)], [t, u._replace(id=b"v" * 16)], []]
    assert len({metadata_hash(facts) for facts in [[t, u], *others]}) == 6
    assert metadata_hash([]) == 0


def test_without_topics_there_are_none() -> None:
    assert NoTopics().named("t") is None
    assert NoTopics().by_id(b"t" * 16) is None
    assert list(NoTopics().names()) == []
    with pytest.raises(BadExpression):
        no_expressions("a")
