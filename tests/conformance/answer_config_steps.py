"""Steps about configs."""

from typing import Any

from ottla.protocol.messages import (
    alter_configs,
    describe_configs,
    incremental_alter_configs,
)
from tests.conformance.answer_step import Steps
from tests.conformance.answer_world import World

TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3

STEPS = Steps()
step = STEPS.add


BROKER_KEYS = [
    "node.id", "log.retention.hours", "log.retention.ms", "message.max.bytes", "num.partitions",
    "log.segment.bytes", "auto.create.topics.enable", "compression.type", "log.cleanup.policy",
    "min.insync.replicas", "process.roles", "broker.rack", "log.flush.interval.messages",
]  # fmt: skip


@step("DescribeConfigs of a topic", range(1, 5))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    asked = describe_configs.DescribeConfigsResource(TOPIC, "small", None)
    return describe_configs.Request([asked], True, include_documentation=version >= 3)


@step("DescribeConfigs by key", range(1, 5))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    resource = describe_configs.DescribeConfigsResource
    return describe_configs.Request(
        [
            resource(TOPIC, "log", ["retention.ms", "no.such"]),
            resource(TOPIC, "compacted", []),
            resource(TOPIC, "no-such-topic", None),
            resource(TOPIC, "bad name", None),
            resource(BROKER, "1", BROKER_KEYS),
            resource(BROKER, "9", None),
            resource(BROKER, "x", None),
            resource(BROKER, "", None),
        ]
    )


@step("DescribeConfigs of a kind that does not exist", range(1, 5))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    resource = describe_configs.DescribeConfigsResource
    return describe_configs.Request([resource(TOPIC, "log", []), resource(99, "1", None)])


@step("DescribeConfigs of a broker with synonyms", range(1, 5))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    asked = describe_configs.DescribeConfigsResource(BROKER, "1", BROKER_KEYS)
    return describe_configs.Request([asked], True, include_documentation=version >= 3)


def changed(kind: int, name: str, *changes: tuple[str, int, str | None]) -> Any:  # noqa: ANN401
    return incremental_alter_configs.AlterConfigsResource(
        kind, name, [incremental_alter_configs.AlterableConfig(*change) for change in changes]
    )


@step("IncrementalAlterConfigs", range(2), settles=True)
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return incremental_alter_configs.Request(
        [
            changed(TOPIC, "plain-2", ("retention.ms", SET, "5"), ("segment.ms", DELETE, None)),
            changed(TOPIC, "plain-3", ("cleanup.policy", APPEND, "compact")),
            changed(TOPIC, "plain-4", ("cleanup.policy", SUBTRACT, "delete")),
            changed(TOPIC, "plain-5", ("retention.ms", APPEND, "5")),
            changed(TOPIC, "plain-6", ("no.such", SET, "5")),
            changed(TOPIC, "plain-7", ("retention.ms", SET, None)),
            changed(TOPIC, "log", ("retention.ms", SET, "5"), ("retention.ms", SET, "6")),
            changed(TOPIC, "sessions", ("segment.bytes", SET, "-1")),
            changed(TOPIC, "no-such-topic", ("retention.ms", SET, "5")),
            changed(TOPIC, "bad name", ("retention.ms", SET, "5")),
            changed(BROKER, "1", ("node.id", SET, "2")),
            changed(BROKER, "9", ("log.retention.ms", SET, "2")),
            changed(BROKER, "x", ("log.retention.ms", SET, "2")),
        ]
    )


@step("IncrementalAlterConfigs of a kind that does not exist", range(2))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return incremental_alter_configs.Request([changed(99, "1", ("log.retention.ms", SET, "2"))])


@step("IncrementalAlterConfigs by an operation that does not exist", range(2))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return incremental_alter_configs.Request([changed(TOPIC, "small", ("retention.ms", 9, "5"))])


@step("IncrementalAlterConfigs only validates", range(2))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return incremental_alter_configs.Request(
        [changed(TOPIC, "log", ("retention.ms", SET, "77"))], validate_only=True
    )


@step("DescribeConfigs of loggers", range(1, 5))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    resource = describe_configs.DescribeConfigsResource
    return describe_configs.Request(
        [
            resource(BROKER_LOGGER, "1", ["root", "no.such"]),
            resource(BROKER_LOGGER, "9", None),
            resource(BROKER_LOGGER, "x", None),
            resource(BROKER_LOGGER, "", None),
        ],
        include_synonyms=True,
        include_documentation=version >= 3,
    )


@step("IncrementalAlterConfigs of loggers", range(2))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return incremental_alter_configs.Request(
        [
            changed(BROKER, "1", ("log.retention.ms", DELETE, None)),
            changed(BROKER_LOGGER, "1", ("root", SET, "WARN")),
            changed(BROKER_LOGGER, "01", ("root", SET, "warn")),
            changed(BROKER_LOGGER, "001", ("no.such", SET, "WARN")),
            changed(BROKER_LOGGER, "0001", ("no.such", DELETE, None)),
            changed(BROKER_LOGGER, "+1", ("root", DELETE, None)),
            changed(BROKER_LOGGER, "+01", ("root", APPEND, "WARN")),
            changed(BROKER_LOGGER, "+001", ("root", SUBTRACT, "WARN")),
            changed(BROKER_LOGGER, "00001", ("root", SET, None)),
            changed(BROKER_LOGGER, "000001", ("root", SET, "INFO"), ("root", SET, "WARN")),
            changed(BROKER_LOGGER, "0000001", ("root", SET, "OFF"), ("no.such", SET, "WARN")),
            changed(BROKER_LOGGER, "00000001"),
            changed(BROKER_LOGGER, "9", ("root", SET, "WARN")),
            changed(BROKER_LOGGER, "x", ("root", SET, "WARN")),
            changed(BROKER_LOGGER, "", ("root", SET, "WARN")),
            changed(BROKER_LOGGER, "twice", ("root", SET, "WARN")),
            changed(BROKER_LOGGER, "twice", ("root", SET, "WARN")),
            changed(TOPIC, "no-such-topic", ("retention.ms", SET, "5")),
        ]
    )


@step("IncrementalAlterConfigs only validates loggers", range(2))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return incremental_alter_configs.Request(
        [changed(BROKER_LOGGER, "1", ("root", SET, "ERROR"))], validate_only=True
    )


@step("DescribeConfigs of the altered loggers", [1])
def _(_: World, version: int) -> Any:  # noqa: ANN401
    resource = describe_configs.DescribeConfigsResource
    return describe_configs.Request([resource(BROKER_LOGGER, "1", ["root"])])


@step("IncrementalAlterConfigs of loggers to what they had", [1])
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return incremental_alter_configs.Request([changed(BROKER_LOGGER, "1", ("root", SET, "INFO"))])


@step("AlterConfigs", range(3), settles=True)
def _(_: World, version: int) -> Any:  # noqa: ANN401
    def resource(kind: int, name: str, **config: str) -> Any:  # noqa: ANN401
        return alter_configs.AlterConfigsResource(
            kind,
            name,
            [alter_configs.AlterableConfig(k.replace("_", "."), v) for k, v in config.items()],
        )

    return alter_configs.Request(
        [
            resource(TOPIC, "plain-2", segment_bytes="2000000"),
            resource(TOPIC, "plain-3", retention_ms="soon"),
            resource(TOPIC, "no-such-topic", retention_ms="5"),
            resource(99, "1", retention_ms="5"),
            resource(BROKER_LOGGER, "1", root="WARN"),
        ]
    )


@step("DescribeConfigs of what was altered", [4])
def _(_: World, version: int) -> Any:  # noqa: ANN401
    keys = ["retention.ms", "segment.bytes", "cleanup.policy"]
    return describe_configs.Request(
        [
            describe_configs.DescribeConfigsResource(TOPIC, name, keys)
            for name in ("plain-2", "plain-3", "plain-4", "plain-5", "log")
        ]
    )
