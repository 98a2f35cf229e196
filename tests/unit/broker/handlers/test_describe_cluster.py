"""DescribeCluster: brokers at their door, controllers at theirs."""

import pytest

from ottla.broker.wire.cluster_view import CLUSTER_OPERATIONS, NOT_ASKED
from ottla.model.errors import ErrorCode
from ottla.protocol.messages import describe_cluster as wire
from tests.unit.broker.serving import CONTROLLER, serving

BROKERS, CONTROLLERS = 1, 2


@pytest.mark.parametrize("version", range(3))
def test_the_brokers_are_listed_in_every_version(version: int) -> None:
    with serving(broker_rack="r") as world:
        answer = world.client().ask(wire.Request(), version)
        assert (answer.error_code, answer.controller_id) == (0, 1)
        assert answer.cluster_id == world.broker.image.cluster_id
        [node] = answer.brokers
        assert (node.broker_id, node.host, node.port, node.rack) == (1, "broker", 9092, "r")
        assert not node.is_fenced
        assert answer.cluster_authorized_operations == NOT_ASKED


def test_what_one_may_do_is_told_if_asked() -> None:
    with serving() as world:
        request = wire.Request(include_cluster_authorized_operations=True)
        answer = world.client().ask(request, 2)
        assert answer.cluster_authorized_operations == CLUSTER_OPERATIONS


def test_controllers_are_listed_at_their_own_door() -> None:
    with serving() as world:
        answer = world.client(CONTROLLER).ask(wire.Request(endpoint_type=CONTROLLERS), 1)
        assert (answer.error_code, answer.endpoint_type) == (0, CONTROLLERS)
        assert [node.broker_id for node in answer.brokers] == [1]


@pytest.mark.parametrize(
    ("listener", "kind", "code"),
    [
        ("PLAINTEXT", CONTROLLERS, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (CONTROLLER, BROKERS, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        ("PLAINTEXT", 7, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_the_wrong_door_says_so(listener: str, kind: int, code: ErrorCode) -> None:
    with serving() as world:
        answer = world.client(listener).ask(wire.Request(endpoint_type=kind), 1)
        assert answer.error_code == code
        assert answer.error_message
        assert answer.brokers == []
