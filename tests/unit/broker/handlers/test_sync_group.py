"""SyncGroup through a broker, in every version."""

import pytest

from ottla.model.errors import ErrorCode
from tests.unit.broker.grouping import QUICK, find, join
from tests.unit.broker.serving import serving
from tests.unit.groups.driving import syncing


@pytest.mark.parametrize("version", range(6))
def test_a_member_gets_its_assignment_in_every_version(version: int) -> None:
    with serving(**QUICK) as world:
        find(world)
        client = world.client()
        member = join(client).member_id
        both = {"protocol_type": "consumer", "protocol_name": "range"}
        answer = client.ask(syncing(1, member, {member: b"all"}, **both), version)
        assert (answer.error_code, answer.assignment) == (0, b"all")
        stale = client.ask(syncing(2, member, **both), version)
        assert stale.error_code == ErrorCode.ILLEGAL_GENERATION


def test_an_empty_group_id_is_refused() -> None:
    with serving(**QUICK) as world:
        request = syncing(1, "m")
        request.group_id = ""
        assert world.client().ask(request, 4).error_code == ErrorCode.INVALID_GROUP_ID


def test_a_new_client_must_say_its_protocol() -> None:
    with serving(**QUICK) as world:
        code = world.client().ask(syncing(1, "m")).error_code
        assert code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
