"""InitProducerId: every idempotent producer gets an id of its own, for ever."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import init_producer_id as wire
from tests.unit.broker.serving import World, serving

VERSIONS = range(6)


def take(world: World, version: int = 5, **options: object) -> wire.Response:
    request = wire.Request(transactional_id=None, transaction_timeout_ms=1000, **options)
    return world.client().ask(request, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_id_is_given_in_every_version(version: int) -> None:
    with serving() as world:
        answer = take(world, version)
        assert (answer.error_code, answer.producer_epoch) == (0, 0)
        assert answer.producer_id >= 0


def test_no_id_is_given_twice_whatever_happens() -> None:
    with serving() as world:
        given = [take(world).producer_id for _ in range(3)]
        world.restart()
        given += [take(world).producer_id for _ in range(3)]
        world.lose_power()
        given += [take(world).producer_id for _ in range(3)]
        assert len(set(given)) == len(given)


def test_a_producer_that_names_its_present_id_gets_a_new_one() -> None:
    with serving() as world:
        first = take(world).producer_id
        answer = take(world, 3, producer_id=first, producer_epoch=0)
        assert answer.error_code == 0
        assert answer.producer_id != first


@pytest.mark.parametrize("present", [{"producer_id": 5}, {"producer_epoch": 0}])
def test_half_of_a_present_id_is_refused(present: dict[str, int]) -> None:
    with serving() as world:
        answer = take(world, 3, **present)
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


@pytest.mark.parametrize("version", VERSIONS)
def test_transactions_are_refused_for_good(version: int) -> None:
    with serving() as world:
        client = world.client()
        answer = client.ask(wire.Request("some-id", 1000), version)
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert client.ask(wire.Request("", 1000), version).error_code == ErrorCode.INVALID_REQUEST
