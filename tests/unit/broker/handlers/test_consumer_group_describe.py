"""ConsumerGroupDescribe through a broker."""

import pytest

from ottla.broker.wire.cluster_view import GROUP_OPERATIONS
from ottla.model.errors import ErrorCode
from ottla.protocol.messages import consumer_group_describe as wire
from tests.unit.broker.grouping import QUICK, find
from tests.unit.broker.handlers.test_consumer_group_heartbeat import joining
from tests.unit.broker.serving import serving
from tests.unit.groups.driving import GROUP


@pytest.mark.parametrize("version", range(2))
def test_groups_are_described_in_every_version(version: int) -> None:
    with serving(**QUICK) as world:
        world.topic("t", 2)
        find(world)
        world.client().ask(joining())
        found, lost = world.client().ask(wire.Request([GROUP, "x"], True), version).groups
        assert (found.error_code, found.group_state) == (0, "Stable")
        assert found.authorized_operations == GROUP_OPERATIONS
        (member,) = found.members
        assert (member.member_id, member.client_host) == ("m", "/client")
        assert member.member_type == (1 if version else -1)
        assert member.assignment.topic_partitions[0].topic_name == "t"
        assert lost.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_without_a_coordinator_each_group_says_so() -> None:
    with serving(**QUICK) as world:
        groups = world.client().ask(wire.Request(["a", ""])).groups
        codes = [one.error_code for one in groups]
        assert codes == [ErrorCode.NOT_COORDINATOR, ErrorCode.INVALID_GROUP_ID]
