"""Heartbeat through a broker, in every version."""

import pytest

from ottla.model.errors import ErrorCode
from tests.unit.broker.grouping import QUICK, stable
from tests.unit.broker.serving import serving
from tests.unit.groups.driving import beating


@pytest.mark.parametrize("version", range(5))
def test_a_member_is_alive_in_every_version(version: int) -> None:
    with serving(**QUICK) as world:
        client, generation, member = stable(world)
        assert client.ask(beating(generation, member), version).error_code == 0
        unknown = client.ask(beating(generation, "x"), version)
        assert unknown.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_before_there_is_a_coordinator_nobody_is_a_member() -> None:
    with serving(**QUICK) as world:
        answer = world.client().ask(beating(1, "m"))
        assert answer.error_code == ErrorCode.NOT_COORDINATOR
