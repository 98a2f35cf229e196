"""FindCoordinator: one or many groups, and what is no group."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import find_coordinator as wire
from tests.unit.broker.grouping import QUICK, find
from tests.unit.broker.serving import serving


@pytest.mark.parametrize("version", range(4))
def test_one_group_has_its_broker(version: int) -> None:
    with serving(**QUICK) as world:
        answer = world.client().ask(wire.Request(key="g"), version)
        assert (answer.error_code, answer.node_id) == (0, 1)
        assert (answer.host, answer.port) == ("broker", 9092)


def test_many_groups_have_theirs() -> None:
    with serving(**QUICK) as world:
        found = find(world, "a", "b", "").coordinators
        assert [(one.key, one.error_code, one.node_id) for one in found] == [
            ("a", 0, 1),
            ("b", 0, 1),
            ("", 0, 1),  # Only joining needs a name.
        ]


@pytest.mark.parametrize(
    ("key_type", "code"),
    [(1, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED), (2, ErrorCode.INVALID_REQUEST)],
)
def test_what_is_not_served_is_refused_for_good(key_type: int, code: ErrorCode) -> None:
    with serving(**QUICK) as world:
        answer = world.client().ask(wire.Request(key_type=key_type, coordinator_keys=["x"]))
        assert answer.coordinators[0].error_code == code
        assert not world.broker.image.topics_by_name


def test_where_the_topic_cannot_be_made_there_is_no_coordinator_yet() -> None:
    with serving(**QUICK) as world:
        room, world.disk.capacity_bytes = world.disk.capacity_bytes, 0
        (found,) = find(world, "g").coordinators
        assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        world.disk.capacity_bytes = room
        assert find(world, "g").coordinators[0].error_code == 0
