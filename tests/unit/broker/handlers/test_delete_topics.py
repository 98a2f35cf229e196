import pytest

from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.messages import delete_topics as wire
from tests.unit.broker.serving import DATA, serving


def request(version: int, name: str) -> wire.Request:
    if version < 6:
        return wire.Request(topic_names=[name])
    return wire.Request(topics=[wire.DeleteTopicState(name)])


@pytest.mark.parametrize("version", range(1, 7))
def test_a_deleted_topic_is_gone_in_every_version(version: int) -> None:
    with serving() as world:
        world.topic("t")
        (result,) = world.client().ask(request(version, "t"), version).responses
        assert (result.name, result.error_code) == ("t", 0)
        with pytest.raises(Refusal, match="UNKNOWN_TOPIC_OR_PARTITION"):
            world.partition("t")
        assert "t-0" not in world.disk.list(DATA)


def test_a_topic_goes_by_its_id() -> None:
    with serving() as world:
        topic_id = world.topic("t")
        by_id = wire.Request([wire.DeleteTopicState(None, topic_id)])
        (result,) = world.client().ask(by_id).responses
        assert (result.name, result.topic_id, result.error_code) == ("t", topic_id, 0)


def test_a_name_that_is_deleted_may_be_used_again() -> None:
    with serving() as world:
        first = world.topic("t")
        world.delete("t")
        assert world.topic("t") != first
        assert world.partition("t").log.end_offset == 0


@pytest.mark.parametrize(
    ("version", "code"),
    [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)],
)
def test_where_deleting_is_disabled_nothing_goes(version: int, code: ErrorCode) -> None:
    with serving(delete_topic_enable="false") as world:
        world.topic("t")
        (result,) = world.client().ask(request(version, "t"), version).responses
        assert result.error_code == code
        assert world.partition("t").log.end_offset == 0
