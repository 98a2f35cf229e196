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
