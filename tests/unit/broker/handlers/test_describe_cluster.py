import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import describe_cluster as wire
from tests.unit.broker.serving import CONTROLLER, serving

BROKERS, CONTROLLERS = 1, 2


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_described_in_every_version(version: int) -> None:
    with serving(broker_rack="r1") as world:
        response = world.client().ask(wire.Request(), version)
        assert response.cluster_id == world.broker.image.cluster_id
    assert (response.error_code, response.controller_id) == (0, 1)
    (broker,) = response.brokers
    assert (broker.broker_id, broker.host, broker.port, broker.rack) == (1, "broker", 9092, "r1")
    assert response.cluster_authorized_operations == -(1 << 31)


def test_what_the_caller_may_do_is_told_if_asked_for() -> None:
    with serving() as world:
        request = wire.Request(include_cluster_authorized_operations=True)
        assert world.client().ask(request).cluster_authorized_operations == 8096


def test_controllers_are_described_by_a_controller() -> None:
    with serving() as world:
        response = world.client(CONTROLLER).ask(wire.Request(endpoint_type=CONTROLLERS))
        port = world.broker.addresses[CONTROLLER].port
    (controller,) = response.brokers
    assert (controller.broker_id, controller.port) == (1, port)
    assert response.endpoint_type == CONTROLLERS


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (CONTROLLERS, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (7, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_the_wrong_kind_of_endpoint_is_refused(asked: int, code: ErrorCode) -> None:
    with serving() as world:
        response = world.client().ask(wire.Request(endpoint_type=asked))
    assert response.error_code == code
    assert response.brokers == []


def test_before_version_one_the_refusal_has_an_older_code() -> None:
    with serving() as world:
        response = world.client(CONTROLLER).ask(wire.Request(), 0)
    assert response.error_code == ErrorCode.INVALID_REQUEST
