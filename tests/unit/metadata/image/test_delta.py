from ottla.metadata.image.cluster import Topic
from ottla.metadata.image.delta import Changes

BEFORE = Topic("t", b"1" * 16, {})
AFTER = Topic("t", b"1" * 16, {})


def test_a_topic_that_came_is_created() -> None:
    delta = Changes(topics={AFTER.id: None}).finish({AFTER.id: AFTER})
    assert delta.created == [AFTER]
    assert not delta.changed


def test_a_topic_that_stayed_is_changed_from_one_to_the_other() -> None:
    delta = Changes(topics={BEFORE.id: BEFORE}).finish({AFTER.id: AFTER})
    assert delta.changed[0][0] is BEFORE
    assert delta.changed[0][1] is AFTER


def test_a_topic_that_went_is_deleted_as_it_last_was() -> None:
    assert Changes(topics={BEFORE.id: BEFORE}).finish({}).deleted == [BEFORE]


def test_a_topic_that_came_and_went_never_was() -> None:
    delta = Changes(topics={BEFORE.id: None}).finish({})
    assert not delta.created
    assert not delta.deleted
