"""ListConfigResources: topics and brokers that are there, groups for which something is set."""

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import list_config_resources as wire
from tests.unit.broker.coordinators.test_group_settings import GROUP, alter
from tests.unit.broker.serving import World, serving

TOPIC, BROKER, LOGGER, METRICS, GROUPS = 2, 4, 8, 16, 32


def listed(world: World, *kinds: int, version: int = 1) -> list[tuple[str, int]]:
    answer = world.client().ask(wire.Request(list(kinds)), version)
    assert answer.error_code == 0
    return [(one.resource_name, one.resource_type) for one in answer.config_resources]


def test_what_is_there_is_listed_by_its_kind() -> None:
    with serving() as world:
        world.topic("t")
        assert listed(world, TOPIC) == [("t", TOPIC)]
        assert listed(world, TOPIC, BROKER) == [("1", BROKER), ("t", TOPIC)]
        assert listed(world) == [("1", LOGGER), ("1", BROKER), ("t", TOPIC)]
        assert listed(world, version=0) == []


def test_a_group_is_listed_while_something_is_set_for_it() -> None:
    with serving() as world:
        assert listed(world, GROUPS) == []
        world.client().ask(alter(consumer_session_timeout_ms="50000"))
        assert listed(world, GROUPS) == [(GROUP, GROUPS)]
        world.client().ask(alter(consumer_session_timeout_ms=None))
        assert listed(world, GROUPS) == []


def test_a_kind_that_does_not_exist_is_refused() -> None:
    with serving() as world:
        answer = world.client().ask(wire.Request([GROUPS, 1]), 1)
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
