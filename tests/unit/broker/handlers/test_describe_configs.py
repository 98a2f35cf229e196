"""DescribeConfigs against a broker's real settings and image; the wire is in tests/conformance."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from ottla.broker.handlers.describe_configs import COST_US, UNSET_GROUPS_BYTES_MAX, handle
from ottla.broker.settings.settings import Settings, zero_configuration
from ottla.broker.wire.batch_scans import TURN_US, TurnBudget
from ottla.env.log_levels import levels
from ottla.metadata.image.cluster import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from ottla.metadata.image.image import ClusterImage
from ottla.model.errors import ErrorCode
from ottla.model.types import Monotonic
from ottla.protocol import metadata_records as records
from ottla.protocol.codec import decode, encode
from ottla.protocol.messages import describe_configs as wire
from tests.unit.broker.serving import serving


class Scans:
    def __init__(self) -> None:
        self.budget = TurnBudget(
            lambda refill: asyncio.get_running_loop().call_soon(refill), lambda: Monotonic(0)
        )


class Context(NamedTuple):
    """As much of a request as the handler looks at."""

    version: int


@dataclass
class Node:
    """As much of a broker as the handler looks at."""

    settings: Settings = field(
        default_factory=lambda: Settings.load({**zero_configuration("data"), "num.partitions": "7"})
    )
    image: ClusterImage = field(default_factory=ClusterImage)
    node_id: int = 1
    scans: Scans = field(default_factory=lambda: Scans())


@pytest.fixture
def node() -> Node:
    node = Node()
    applied = [
        records.TopicRecord(name="t", topic_id=bytes(15) + b"\x01"),
        records.ConfigRecord(TOPIC_RESOURCE, "t", "retention.ms", "5"),
        records.ConfigRecord(BROKER_RESOURCE, "", "log.segment.bytes", "2000000"),
        records.ConfigRecord(BROKER_RESOURCE, "1", "log.retention.bytes", "9"),
        records.ConfigRecord(GROUP_RESOURCE, "g", "consumer.session.timeout.ms", "45000"),
    ]
    for offset, record in enumerate(applied):
        node.image.apply(offset, record)
    return node


def answer(node: Node, request: wire.Request, version: int = 4) -> wire.Response:
    context: Any = Context(version)
    encoded = asyncio.run(handle(request, context, node))  # type: ignore[arg-type]
    assert encoded.of is wire.Response
    return decode(wire.Response, encoded.body, version)


def describe(
    node: Node, kind: int, name: str, keys: list[str] | None = None, **asked: bool
) -> wire.DescribeConfigsResult:
    resource = wire.DescribeConfigsResource(kind, name, keys)
    (result,) = answer(node, wire.Request([resource], **asked)).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def values(result: wire.DescribeConfigsResult) -> dict[str, str | None]:
    assert result.error_code == ErrorCode.NONE, result.error_message
    return {config.name: config.value for config in result.configs}


def test_a_topic_is_described_with_all_that_counts_for_it(node: Node) -> None:
    found = values(describe(node, TOPIC_RESOURCE, "t"))
    assert len(found) == 33
    assert found["retention.ms"] == "5"
    assert found["segment.bytes"] == "2000000"
    assert found["retention.bytes"] == "9"


def test_only_the_keys_that_were_asked_for_come_back(node: Node) -> None:
    assert set(values(describe(node, TOPIC_RESOURCE, "t", ["flush.ms", "x"]))) == {"flush.ms"}
    assert len(values(describe(node, TOPIC_RESOURCE, "t", []))) == 33


def test_synonyms_and_documentation_come_only_when_asked_for(node: Node) -> None:
    (bare,) = describe(node, TOPIC_RESOURCE, "t", ["retention.ms"]).configs
    assert (bare.synonyms, bare.documentation) == ([], None)
    asked = {"include_synonyms": True, "include_documentation": True}
    (full,) = describe(node, TOPIC_RESOURCE, "t", ["retention.ms"], **asked).configs
    assert full.synonyms
    assert full.documentation


def test_this_broker_and_the_clusters_default_are_described(node: Node) -> None:
    found = values(describe(node, BROKER_RESOURCE, "1"))
    assert (found["num.partitions"], found["broker.id"], found["node.id"]) == ("7", "1", "1")
    assert values(describe(node, BROKER_RESOURCE, "")) == {"log.segment.bytes": "2000000"}


def test_loggers_are_described_with_their_levels(node: Node) -> None:
    assert values(describe(node, BROKER_LOGGER_RESOURCE, "1")) == levels()
    (root,) = describe(node, BROKER_LOGGER_RESOURCE, "1", ["root", "none"]).configs
    assert (root.config_source, root.documentation, root.synonyms) == (6, "", [])


def test_the_configs_of_groups_are_described(node: Node) -> None:
    (own,) = describe(node, GROUP_RESOURCE, "g", ["consumer.session.timeout.ms"]).configs
    assert (own.value, own.config_source) == ("45000", 8)
    found = values(describe(node, GROUP_RESOURCE, "nobody"))
    assert found["consumer.heartbeat.interval.ms"] == "5000"
    assert found["consumer.assignment.interval.ms"] == "1000"


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC_RESOURCE, "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC_RESOURCE, "a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER_RESOURCE, "2", ErrorCode.INVALID_REQUEST),
        (BROKER_RESOURCE, "x", ErrorCode.INVALID_REQUEST),
        (BROKER_RESOURCE, "9" * 5000, ErrorCode.INVALID_REQUEST),
        (BROKER_LOGGER_RESOURCE, "-" + "9" * 5000, ErrorCode.INVALID_REQUEST),
        (BROKER_LOGGER_RESOURCE, "", ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS_RESOURCE, "", ErrorCode.INVALID_REQUEST),
        (99, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_described_gets_kafkas_code(
    node: Node, kind: int, name: str, code: ErrorCode
) -> None:
    result = describe(node, kind, name)
    assert (result.error_code, result.configs) == (code, [])


def groups(count: int) -> list[wire.DescribeConfigsResource]:
    names = [f"g{number}" for number in range(count)]
    return [wire.DescribeConfigsResource(GROUP_RESOURCE, name, None) for name in names]


@pytest.mark.parametrize("version", range(1, 5))
def test_a_request_about_many_lets_others_have_their_turn(version: int) -> None:
    with serving() as world:
        client = world.client()
        per_turn = TURN_US // COST_US[GROUP_RESOURCE]
        asked = client.send(wire.Request(groups(2 * per_turn)), version)
        before = world.loop.turns
        world.until(lambda: client.has_answer(asked))
        assert world.loop.turns - before >= 2
        results = client.answers()[asked].results
        assert [result.resource_name for result in results] == [
            f"g{n}" for n in range(2 * per_turn)
        ]
        assert all(result.configs for result in results)


def test_only_so_many_groups_that_set_nothing_are_described(node: Node) -> None:
    asked = [*groups(5000), wire.DescribeConfigsResource(GROUP_RESOURCE, "g", None)]
    request = wire.Request(asked, include_synonyms=True, include_documentation=True)
    response = answer(node, request)
    codes = [result.error_code for result in response.results]
    assert codes[:100] == [ErrorCode.NONE] * 100
    assert codes[200:-1] == [ErrorCode.INVALID_REQUEST] * 4800
    assert codes[-1] == ErrorCode.NONE
    assert len(encode(response, 4)) < 2 * UNSET_GROUPS_BYTES_MAX + 100 * len(asked)


def test_a_resource_that_is_named_often_is_described_once(node: Node) -> None:
    resource = wire.DescribeConfigsResource(TOPIC_RESOURCE, "t", None)
    response = answer(node, wire.Request([resource] * 50))
    assert [result.resource_name for result in response.results] == ["t"]


@pytest.mark.parametrize("version", range(1, 5))
def test_what_is_encoded_in_parts_is_what_would_be_encoded_at_once(
    node: Node, version: int
) -> None:
    resources = [wire.DescribeConfigsResource(TOPIC_RESOURCE, "t", ["flush.ms"]), *groups(200)]
    response = answer(node, wire.Request(resources, include_synonyms=True), version)
    assert len(response.results) == 201
    context: Any = Context(version)
    request = wire.Request(resources, include_synonyms=True)
    encoded = asyncio.run(handle(request, context, node))  # type: ignore[arg-type]
    assert encoded.body == encode(response, version)
