# ruff: noqa: ANN401  Requests are of whatever class their API has.

from typing import Any

import pytest

from ottla.protocol.messages import alter_configs as legacy
from ottla.protocol.messages import incremental_alter_configs as wire
from ottla.protocol.metadata_records import ConfigRecord
from tests.unit.metadata.controller_driver import ControllerDriver

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


def resource(kind: int, name: str, *changes: tuple[str, int, str | None]) -> Any:
    return wire.AlterConfigsResource(kind, name, [wire.AlterableConfig(*c) for c in changes])


def with_topic(**configs: str) -> ControllerDriver:
    deciding = ControllerDriver()
    deciding.create("t", **configs)
    return deciding


def alter(deciding: ControllerDriver, *resources: Any) -> list[tuple[int, str | None]]:
    response = deciding.ask(wire.Request(list(resources)))
    return [(r.error_code, r.error_message) for r in response.responses]


def test_a_config_is_set_and_deleted() -> None:
    deciding = with_topic(retention_ms="5")
    changes = [("segment.ms", SET, "60000"), ("retention.ms", DELETE, None)]
    assert alter(deciding, resource(TOPIC, "t", *changes)) == [(0, None)]
    assert deciding.image.config_of(TOPIC, "t") == {"segment.ms": "60000"}


def test_a_list_is_appended_to_and_subtracted_from() -> None:
    deciding = with_topic()
    alter(deciding, resource(TOPIC, "t", ("cleanup.policy", APPEND, "compact")))
    assert deciding.image.config_of(TOPIC, "t") == {"cleanup.policy": "delete,compact"}
    alter(deciding, resource(TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete")))
    assert deciding.image.config_of(TOPIC, "t") == {"cleanup.policy": "compact"}


def test_unchanged_configs_are_not_written() -> None:
    deciding = with_topic(retention_ms="5")
    request = wire.Request([resource(TOPIC, "t", ("retention.ms", SET, "5"))])
    assert deciding.decide(request)[1] == []


def test_a_brokers_config_is_written_even_if_it_is_the_same() -> None:
    deciding = ControllerDriver()
    request = wire.Request([resource(BROKER, "1", ("log.retention.ms", SET, "5"))])
    deciding.ask(request)
    assert deciding.decide(request)[1] == [ConfigRecord(BROKER, "1", "log.retention.ms", "5")]


def test_brokers_have_configs_of_their_own_and_of_the_cluster() -> None:
    deciding = ControllerDriver()
    for name in ("", "1"):
        assert alter(deciding, resource(BROKER, name, ("log.retention.ms", SET, "5"))) == [
            (0, None)
        ]
    assert deciding.image.config_of(BROKER, "") == {"log.retention.ms": "5"}


def test_groups_keep_their_configs_for_later() -> None:
    deciding = ControllerDriver()
    alter(deciding, resource(GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")))
    assert deciding.image.config_of(GROUP, "g") == {"consumer.session.timeout.ms": "50000"}


def test_validate_only_writes_nothing() -> None:
    deciding = with_topic()
    request = wire.Request([resource(TOPIC, "t", ("retention.ms", SET, "5"))], validate_only=True)
    response, written = deciding.decide(request)
    assert response.responses[0].error_code == 0
    assert written == []


def test_a_resource_changes_as_a_whole_and_apart_from_others() -> None:
    deciding = with_topic()
    deciding.create("u")
    good = resource(TOPIC, "u", ("retention.ms", SET, "5"))
    bad = resource(TOPIC, "t", ("retention.ms", SET, "5"), ("nope", SET, "1"))
    assert [code for code, _ in alter(deciding, bad, good)] == [40, 0]
    assert deciding.image.config_of(TOPIC, "t") == {}
    assert deciding.image.config_of(TOPIC, "u") == {"retention.ms": "5"}


@pytest.mark.parametrize(
    ("changed", "code", "sentence"),
    [
        (resource(TOPIC, "x", ("retention.ms", SET, "5")), 3, "The topic 'x' does not exist."),
        (resource(TOPIC, "", ("retention.ms", SET, "5")), 42, "Default topic resources"),
        (resource(TOPIC, "a/b", ("retention.ms", SET, "5")), 17, "Topic name is invalid"),
        (resource(TOPIC, "t", ("nope", SET, "5")), 40, "Unknown topic config name: nope"),
        (resource(TOPIC, "t", ("retention.ms", SET, None)), 42, "Null value not supported for :"),
        (resource(TOPIC, "t", ("retention.ms", APPEND, "5")), 40, "its type is not LIST."),
        (resource(TOPIC, "t", ("retention.ms", 9, "5")), 42, "Unknown operations type 9"),
        (
            resource(TOPIC, "t", ("retention.ms", SET, "5"), ("retention.ms", SET, "6")),
            42,
            "Error due to duplicate config keys",
        ),
        (
            resource(TOPIC, "t", ("compression.type", SET, "x" * 40_000)),
            40,
            "exceeds the maximum value size of 32767 bytes.",
        ),
        (resource(BROKER, "abc", ("a", SET, "5")), 42, "Node id must be an integer"),
        (resource(BROKER, "9" * 5000, ("a", SET, "5")), 42, "Node id must be an integer"),
        (resource(TOPIC, "t", ("retention.ms", SET, "9" * 5000)), 40, "whole number of 64 bits"),
        (
            resource(TOPIC, "t", ("compression.type", SET, "\u00e9" * 20_000)),
            40,
            "exceeds the maximum value size of 32767 bytes.",
        ),
        (resource(BROKER, "7", ("a", SET, "5")), 42, "Unexpected broker id, expected 1"),
        (resource(BROKER, "1", ("log.dirs", SET, "/x")), 42, "Cannot update these configs"),
        (resource(LOGGER, "1", ("root", SET, "INFO")), 42, "Unknown resource type 8"),
        (resource(GROUP, "", ("a", SET, "5")), 42, "Default group resources are not allowed."),
        (resource(5, "x", ("a", SET, "5")), 42, "Unknown resource type 5"),
    ],
)
def test_invalid_requests_get_kafkas_errors(changed: Any, code: int, sentence: str) -> None:
    ((answered, message),) = alter(with_topic(), changed)
    assert answered == code
    assert sentence in (message or "")


def test_a_resource_named_twice_is_refused_both_times() -> None:
    twice = [resource(TOPIC, "t", ("retention.ms", SET, str(n))) for n in (1, 2)]
    assert alter(with_topic(), *twice) == [(42, "Each resource must appear at most once.")] * 2


def test_with_elr_the_minimum_of_in_sync_replicas_is_the_clusters() -> None:
    deciding = ControllerDriver(features={"eligible.leader.replicas.version": 1})
    key = "min.insync.replicas"
    refused = alter(deciding, resource(BROKER, "1", (key, SET, "2")))
    assert refused[0][1] == (
        "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
    )
    assert alter(deciding, resource(BROKER, "", (key, SET, "2"))) == [(0, None)]
    assert alter(deciding, resource(BROKER, "", (key, DELETE, None)))[0][0] == 40


def test_the_older_api_replaces_all_that_was_set() -> None:
    deciding = with_topic(retention_ms="5", segment_ms="60000")
    changed = legacy.AlterConfigsResource(TOPIC, "t", [legacy.AlterableConfig("flush.ms", "9")])
    response = deciding.ask(legacy.Request([changed]))
    assert response.responses[0].error_code == 0
    assert deciding.image.config_of(TOPIC, "t") == {"flush.ms": "9"}
    nothing = legacy.AlterConfigsResource(TOPIC, "t", [legacy.AlterableConfig("flush.ms", None)])
    assert deciding.ask(legacy.Request([nothing])).responses[0].error_code == 42
