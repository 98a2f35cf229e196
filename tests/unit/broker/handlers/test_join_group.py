"""JoinGroup through a broker, in every version."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import join_group as wire
from tests.unit.broker.grouping import QUICK, find
from tests.unit.broker.serving import serving
from tests.unit.groups.driving import joining, subscription


@pytest.mark.parametrize("version", range(10))
def test_a_member_joins_in_every_version(version: int) -> None:
    with serving(**QUICK) as world:
        find(world)
        client = world.client()
        request = joining()
        if version < 1:
            request.rebalance_timeout_ms = -1
        answer = client.ask(request, version)
        if version >= 4:
            assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
            assert answer.protocol_name == ("" if version < 7 else None)
            request.member_id = answer.member_id
            answer = client.ask(request, version)
        assert (answer.error_code, answer.generation_id) == (0, 1)
        assert answer.leader == answer.member_id
        assert answer.members[0].metadata == subscription("t")


def test_a_refused_member_hears_its_own_id() -> None:
    with serving(**QUICK) as world:
        find(world)
        for version in (0, 9):
            request = joining("unheard-of", rebalance_timeout_ms=-1)
            answer = world.client().ask(request, version)
            assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
            assert answer.member_id == "unheard-of"


def test_an_empty_group_id_is_refused() -> None:
    with serving(**QUICK) as world:
        find(world)
        answer = world.client().ask(wire.Request(session_timeout_ms=10_000))
        assert answer.error_code == ErrorCode.INVALID_GROUP_ID
