"""ConsumerGroupHeartbeat through a broker."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import consumer_group_heartbeat as wire
from tests.unit.broker.grouping import QUICK, find
from tests.unit.broker.serving import serving
from tests.unit.groups.driving import GROUP


def joining(**fields: object) -> wire.Request:
    request = wire.Request(GROUP, "m", 0, None, None, 30_000, ["t"], None, None, [])
    for name, value in fields.items():
        setattr(request, name, value)
    return request


@pytest.mark.parametrize("version", range(2))
def test_a_member_owns_what_it_subscribed_to_even_after_a_restart(version: int) -> None:
    with serving(**QUICK) as world:
        topic_id = world.topic("t", 3)
        find(world)
        answer = world.client().ask(joining(), version)
        assert (answer.error_code, answer.member_epoch) == (0, 1)
        (given,) = answer.assignment.topic_partitions
        assert (given.topic_id, given.partitions) == (topic_id, [0, 1, 2])
        world.restart()
        beat = wire.Request(GROUP, "m", 1)
        world.until(lambda: world.client().ask(beat, version).error_code == 0)
        assert world.client().ask(beat, version).member_epoch == 1


def test_a_topic_that_is_made_later_is_given_then() -> None:
    with serving(**QUICK) as world:
        find(world)
        request = joining(subscribed_topic_names=[], subscribed_topic_regex="t.*")
        assert world.client().ask(request).assignment.topic_partitions == []
        world.topic("t", 2)
        answer = world.client().ask(wire.Request(GROUP, "m", 1, topic_partitions=[]))
        assert answer.assignment.topic_partitions[0].partitions == [0, 1]


def test_a_refusal_says_why() -> None:
    with serving(**QUICK) as world:
        find(world)
        answer = world.client().ask(joining(server_assignor="sticky"))
        assert answer.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
        assert "uniform, range" in answer.error_message
        assert world.client().ask(joining(member_epoch=5)).error_code == (
            ErrorCode.GROUP_ID_NOT_FOUND
        )
