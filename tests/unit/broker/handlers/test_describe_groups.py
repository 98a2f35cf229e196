"""DescribeGroups through a broker, in every version."""

import pytest

from ottla.broker.wire.cluster_view import GROUP_OPERATIONS
from ottla.model.errors import ErrorCode
from ottla.protocol.messages import describe_groups as wire
from tests.unit.broker.grouping import QUICK, stable
from tests.unit.broker.serving import serving
from tests.unit.groups.driving import GROUP


@pytest.mark.parametrize("version", range(7))
def test_groups_are_described_in_every_version(version: int) -> None:
    with serving(**QUICK) as world:
        client, _, member = stable(world)
        found, lost = client.ask(wire.Request([GROUP, "x"]), version).groups
        assert (found.error_code, found.group_state) == (0, "Stable")
        assert [one.member_id for one in found.members] == [member]
        assert lost.group_state == "Dead"
        assert lost.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0)


def test_what_the_caller_may_do_is_told_if_asked() -> None:
    with serving(**QUICK) as world:
        client, _, _ = stable(world)
        (found,) = client.ask(wire.Request([GROUP], True)).groups
        assert found.authorized_operations == GROUP_OPERATIONS


def test_without_a_coordinator_each_group_says_so() -> None:
    with serving(**QUICK) as world:
        groups = world.client().ask(wire.Request(["a", "b"])).groups
        assert [one.error_code for one in groups] == [ErrorCode.NOT_COORDINATOR] * 2
