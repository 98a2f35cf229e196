import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import init_producer_id as wire
from tests.unit.broker.serving import serving


@pytest.mark.parametrize("version", range(6))
def test_a_producer_gets_an_id_in_every_version(version: int) -> None:
    with serving() as world:
        response = world.client().ask(wire.Request(None, 60_000), version)
    assert (response.error_code, response.producer_id, response.producer_epoch) == (0, 0, 0)


def test_no_id_is_given_twice_even_after_a_restart() -> None:
    with serving() as world:
        ids = [world.client().ask(wire.Request(None, 60_000), 5).producer_id for _ in range(1_100)]
        world.restart()
        ids.append(world.client().ask(wire.Request(None, 60_000), 5).producer_id)
    assert len(set(ids)) == len(ids)
    assert ids[:1_100] == list(range(1_100))


def test_a_producer_that_names_its_id_gets_a_new_one() -> None:
    with serving() as world:
        response = world.client().ask(wire.Request(None, 60_000, 77, 3), 5)
    assert (response.error_code, response.producer_epoch) == (0, 0)
    assert response.producer_id != 77


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (wire.Request("", 60_000), ErrorCode.INVALID_REQUEST),
        (wire.Request(None, 60_000, 5, -1), ErrorCode.INVALID_REQUEST),
        (wire.Request(None, 60_000, -1, 5), ErrorCode.INVALID_REQUEST),
        (wire.Request("tx", 60_000), ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_what_cannot_be_is_refused(request_: wire.Request, code: ErrorCode) -> None:
    with serving() as world:
        response = world.client().ask(request_, 5)
    assert (response.error_code, response.producer_id) == (code, -1)
