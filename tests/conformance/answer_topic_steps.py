"""Steps about topics: made, grown and deleted."""

from typing import Any

from ottla.protocol.messages import (
    create_partitions,
    create_topics,
    delete_topics,
)
from tests.conformance.answer_step import Steps
from tests.conformance.answer_world import NO_SUCH_ID, World

STEPS = Steps()
step = STEPS.add


def new_topic(name: str, partitions: int = 1, replicas: int = 1, **config: str | None) -> Any:  # noqa: ANN401
    return create_topics.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[
            create_topics.CreatableTopicConfig(key.replace("_", "."), value)
            for key, value in config.items()
        ],
    )


def assigned(name: str, *assignments: tuple[int, list[int]], partitions: int = -1) -> Any:  # noqa: ANN401
    return create_topics.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=-1,
        assignments=[
            create_topics.CreatableReplicaAssignment(index, brokers)
            for index, brokers in assignments
        ],
    )


@step("CreateTopics makes topics", range(2, 8), settles=True)
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return create_topics.Request(
        topics=[
            new_topic(f"plain-{version}", 2),
            new_topic(f"set-{version}", 1, 1, retention_ms="1000", cleanup_policy="compact"),
            assigned(f"assigned-{version}", (0, [1]), (1, [1])),
            new_topic(f"dotted.{version}"),
        ]
    )


@step("CreateTopics refuses", range(2, 8))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return create_topics.Request(
        topics=[
            new_topic("plain-2"),
            new_topic("bad name"),
            new_topic(""),
            new_topic("."),
            new_topic("x" * 250),
            new_topic("dotted_2"),
            new_topic("no-partitions", 0),
            new_topic("negative", -3),
            new_topic("replicas", 1, 3),
            new_topic("no-replicas", 1, 0),
            new_topic("unknown-config", no_such="1"),
            new_topic("bad-config", retention_ms="soon"),
            new_topic("low-config", segment_bytes="1"),
            new_topic("null-config", retention_ms=None),
            assigned("both", (0, [1]), partitions=1),
            assigned("gap", (0, [1]), (2, [1])),
            assigned("stranger", (0, [9])),
            assigned("twice", (0, [1, 1])),
            assigned("nobody", (0, [])),
            new_topic("same"),
            new_topic("same"),
        ]
    )


@step("CreateTopics uses the broker's defaults", range(4, 8), settles=True)
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return create_topics.Request(topics=[new_topic(f"defaults-{version}", -1, -1)])


@step("CreateTopics only validates", range(2, 8))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return create_topics.Request(
        topics=[new_topic("imagined", 3), new_topic("plain-2")], validate_only=True
    )


@step("CreateTopics makes what the next steps use", [7], settles=True)
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return create_topics.Request(
        topics=[
            new_topic("log"),
            new_topic("bad"),
            new_topic("small", max_message_bytes="500"),
            new_topic("compacted", cleanup_policy="compact"),
            new_topic("idempotent"),
            new_topic("sessions", 2),
            new_topic("strict", message_timestamp_after_max_ms="1000"),
        ]
    )


@step("CreatePartitions", range(4), settles=True)
def _(_: World, version: int) -> Any:  # noqa: ANN401
    def topic(name: str, count: int, *assignments: list[int]) -> Any:  # noqa: ANN401
        made = [create_partitions.CreatePartitionsAssignment(brokers) for brokers in assignments]
        return create_partitions.CreatePartitionsTopic(name, count, made or None)

    return create_partitions.Request(
        topics=[
            topic("plain-2", 3 + version),
            topic("plain-3", 1),
            topic("plain-4", 2),
            topic("plain-5", 0),
            topic("plain-6", 3, [9]),
            topic("plain-7", 4, [1]),
            topic("no-such-topic", 2),
        ],
        timeout_ms=10_000,
    )


@step("DeleteTopics", range(1, 6), settles=True)
def _(_: World, version: int) -> Any:  # noqa: ANN401
    names = [f"set-{version + 1}", "no-such-topic", "bad name"]
    return delete_topics.Request(topic_names=names, timeout_ms=10_000)


@step("DeleteTopics by id", [6], settles=True)
def _(world: World, version: int) -> Any:  # noqa: ANN401
    state = delete_topics.DeleteTopicState
    return delete_topics.Request(
        topics=[
            state(name="assigned-2"),
            state(topic_id=world.topic_id("assigned-3")),
            state(name="no-such-topic"),
            state(topic_id=NO_SUCH_ID),
        ],
        timeout_ms=10_000,
    )
