from ottla.metadata.image.cluster import Topic
from ottla.metadata.image.delta import Changes

BEFORE = Topic("t", b"1" * 16, {})
AFTER = Topic("t", b"1" * 16, {})


def test_delta_lists_a_new_topic_as_created() -> None:
    delta = Changes(topics={AFTER.id: None}).finish({AFTER.id: AFTER})
    assert delta.created == [AFTER]
    assert not delta.changed


def test_delta_lists_a_changed_topic_with_both_states() -> None:
    delta = Changes(topics={BEFORE.id: BEFORE}).finish({AFTER.id: AFTER})
    assert delta.changed[0][0] is BEFORE
    assert delta.changed[0][1] is AFTER


def test_delta_lists_a_deleted_topic_in_its_last_state() -> None:
    assert Changes(topics={BEFORE.id: BEFORE}).finish({}).deleted == [BEFORE]


def test_delta_omits_a_topic_created_and_deleted() -> None:
    delta = Changes(topics={BEFORE.id: None}).finish({})
    assert not delta.created
    assert not delta.deleted
