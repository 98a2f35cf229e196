"""IncrementalAlterConfigs through a broker: the levels of its loggers beside other resources."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.env.log_levels import ROOT, levels
from ottla.model.errors import ErrorCode
from ottla.protocol.messages import incremental_alter_configs as wire
from tests.unit.broker.serving import BROKER_RESOURCE, DELETE, SET, World, serving

LOGGER_RESOURCE = 8
APPEND, SUBTRACT = 2, 3
NAME = "ottla.broker.wire"

# ruff: noqa: ANN401  Messages are of any class.


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = {name: logging.getLogger(name).level for name in ("ottla", NAME)}
    yield
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


@pytest.fixture
def world() -> Iterator[World]:
    with serving() as made:
        yield made


def resource(name: str, *changes: tuple[str, int, str | None], kind: int = LOGGER_RESOURCE) -> Any:
    return wire.AlterConfigsResource(kind, name, [wire.AlterableConfig(*c) for c in changes])


def alter(world: World, *resources: Any, validate_only: bool = False) -> list[Any]:
    request = wire.Request(list(resources), validate_only)
    return list(world.client().ask(request, 1).responses)


def test_levels_are_set_and_unset(world: World) -> None:
    (answer,) = alter(world, resource("1", (NAME, SET, "ERROR"), (ROOT, SET, "DEBUG")))
    assert answer.error_code == 0
    assert (levels()[NAME], levels()[f"{NAME}.dispatch"], levels()[ROOT]) == (
        "ERROR",
        "ERROR",
        "DEBUG",
    )
    (answer,) = alter(world, resource("1", (NAME, DELETE, None)))
    assert (answer.error_code, levels()[NAME]) == (0, "DEBUG")


def test_a_change_of_a_level_is_logged_with_the_client(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    alter(world, resource("1", (NAME, SET, "TRACE")))
    assert f"log level of {NAME} is TRACE now, by User:ANONYMOUS (client " in caplog.text


def test_other_resources_of_the_request_are_decided_by_the_controller(world: World) -> None:
    answers = alter(
        world,
        resource("1", (NAME, SET, "WARN")),
        resource("1", ("log.retention.ms", SET, "77000"), kind=BROKER_RESOURCE),
        resource("1", (NAME, SET, "WARN"), kind=99),
    )
    assert [answer.error_code for answer in answers] == [0, 0, ErrorCode.INVALID_REQUEST]
    assert [answer.resource_type for answer in answers] == [LOGGER_RESOURCE, BROKER_RESOURCE, 99]
    assert world.broker.image.config_of(BROKER_RESOURCE, "1") == {"log.retention.ms": "77000"}
    assert levels()[NAME] == "WARN"


def test_levels_are_not_part_of_the_metadata(world: World) -> None:
    alter(world, resource("1", (NAME, SET, "WARN")))
    assert world.broker.image.config_of(LOGGER_RESOURCE, "1") == {}


def test_validation_changes_nothing(world: World) -> None:
    before = levels()[NAME]
    (answer,) = alter(world, resource("1", (NAME, SET, "FATAL")), validate_only=True)
    assert (answer.error_code, levels()[NAME]) == (0, before)


REFUSED = [
    ("1", (NAME, SET, "loud"), ErrorCode.INVALID_CONFIG, "Valid log levels are DEBUG, ERROR, "),
    ("1", (NAME, SET, "OFF"), ErrorCode.INVALID_CONFIG, "not a supported log level"),
    ("1", ("none", SET, "WARN"), ErrorCode.INVALID_CONFIG, "Logger none does not exist!"),
    ("1", ("none", DELETE, None), ErrorCode.INVALID_CONFIG, "Logger none does not exist!"),
    ("1", (ROOT, DELETE, None), ErrorCode.INVALID_REQUEST, "root logger is not allowed"),
    ("1", (NAME, APPEND, "WARN"), ErrorCode.INVALID_REQUEST, "APPEND operation is not allowed"),
    ("1", (NAME, SUBTRACT, "WARN"), ErrorCode.INVALID_REQUEST, "SUBTRACT operation is not"),
    ("1", (NAME, 9, "WARN"), ErrorCode.INVALID_REQUEST, "operation is not allowed"),
    ("1", (NAME, SET, None), ErrorCode.INVALID_REQUEST, "Null value not supported"),
    ("2", (NAME, SET, "WARN"), ErrorCode.INVALID_REQUEST, "Expected 1, but received 2"),
    ("", (NAME, SET, "WARN"), ErrorCode.INVALID_REQUEST, "Node id must be an integer"),
]


@pytest.mark.parametrize(("name", "change", "code", "message"), REFUSED)
def test_what_cannot_be_set_gets_kafkas_code_and_changes_no_level(
    world: World, name: str, change: Any, code: ErrorCode, message: str
) -> None:
    before = levels()
    (answer,) = alter(world, resource(name, (f"{NAME}.dispatch", SET, "FATAL"), change))
    assert answer.error_code == code
    assert message in (answer.error_message or "")
    assert levels()[f"{NAME}.dispatch"] == before[f"{NAME}.dispatch"]


def test_a_broker_named_twice_is_refused_twice(world: World) -> None:
    answers = alter(world, resource("1", (NAME, SET, "WARN")), resource("1", (ROOT, SET, "WARN")))
    assert [answer.error_code for answer in answers] == [ErrorCode.INVALID_REQUEST] * 2
