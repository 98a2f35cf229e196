"""LeaveGroup through a broker, in every version."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import leave_group as wire
from tests.unit.broker.grouping import QUICK, stable
from tests.unit.broker.serving import serving
from tests.unit.groups.driving import GROUP, leaving


@pytest.mark.parametrize("version", range(6))
def test_a_member_leaves_in_every_version(version: int) -> None:
    with serving(**QUICK) as world:
        client, _, member = stable(world)
        unknown = ErrorCode.UNKNOWN_MEMBER_ID
        for code in (0, unknown):
            if version < 3:
                assert client.ask(wire.Request(GROUP, member), version).error_code == code
            else:
                answer = client.ask(leaving(member), version)
                assert answer.error_code == 0
                assert [one.error_code for one in answer.members] == [code]
