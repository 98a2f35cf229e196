"""DeleteGroups through a broker, in every version."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import delete_groups as wire
from tests.unit.broker.grouping import QUICK, commit, fetch, stable
from tests.unit.broker.serving import serving
from tests.unit.groups.driving import GROUP


@pytest.mark.parametrize("version", range(3))
def test_only_groups_that_nobody_is_in_are_deleted(version: int) -> None:
    with serving(**QUICK) as world:
        client, _, _ = stable(world)
        world.topic("t")
        commit(world, 5, group="old")
        answer = client.ask(wire.Request([GROUP, "old", "x", "old"]), version)
        assert {one.group_id: one.error_code for one in answer.results} == {
            GROUP: ErrorCode.NON_EMPTY_GROUP,
            "old": 0,
            "x": ErrorCode.GROUP_ID_NOT_FOUND,
        }
        assert fetch(world, group="old") == (-1, 0)


@pytest.mark.parametrize("late_ms", [0, 1, 500])
def test_a_group_whose_last_session_has_just_expired_is_deleted(late_ms: int) -> None:
    """The loop was busy, so that the request comes before the timer."""
    with serving(**QUICK) as world:
        client, _, _ = stable(world)
        machine = world.broker.groups._machines[world.broker.groups.partition_of(GROUP)]
        expires_at = machine._machine.next_deadline()
        assert expires_at is not None
        world.loop.now_ns = (expires_at - 1) * 1_000_000
        asked = client.send(wire.Request([GROUP]))
        assert client.answer_to(asked).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
        world.loop.now_ns = (expires_at + late_ms) * 1_000_000
        asked = client.send(wire.Request([GROUP]))
        assert client.answer_to(asked).results[0].error_code == 0
