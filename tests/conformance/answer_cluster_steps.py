"""Steps about a cluster's own affairs: elections, moves of partitions, features, brokers."""

from typing import Any

from ottla.protocol.messages import (
    alter_partition_reassignments,
    elect_leaders,
    list_partition_reassignments,
    unregister_broker,
    update_features,
)
from tests.conformance.answer_step import Steps
from tests.conformance.answer_world import World

STEPS = Steps()
step = STEPS.add

PREFERRED, UNCLEAN = 0, 1


# ElectLeaders.


def elected(election_type: int, topic: str = "log", partition: int = 0) -> Any:  # noqa: ANN401
    named = [elect_leaders.TopicPartitions(topic, [partition])]
    return elect_leaders.Request(election_type, named, timeout_ms=5000)


@step("ElectLeaders where the preferred one leads", range(3))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return elected(PREFERRED)


@step("ElectLeaders uncleanly where somebody leads", range(1, 3))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return elected(UNCLEAN)


@step("ElectLeaders of a topic that is not there", range(3))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return elected(PREFERRED, "nowhere")


@step("ElectLeaders of a partition that is not there", range(3))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return elected(PREFERRED, partition=99)


@step("ElectLeaders by a kind of election that is none", range(1, 3))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return elected(7)


# Moves of partitions.


def moved(topic: str, partition: int, replicas: list[int] | None) -> Any:  # noqa: ANN401
    part = alter_partition_reassignments.ReassignablePartition(partition, replicas)
    named = alter_partition_reassignments.ReassignableTopic(topic, [part])
    return alter_partition_reassignments.Request(timeout_ms=5000, topics=[named])


MOVES: dict[str, tuple[str, int, list[int] | None]] = {
    "to a broker that is not there": ("log", 0, [77]),
    "to nobody": ("log", 0, []),
    "to one broker twice": ("log", 0, [1, 1]),
    "of a partition that is not there": ("log", 99, [1]),
    "of a topic that is not there": ("nowhere", 0, [1]),
    "that is to stop and never began": ("log", 0, None),
    "to where it is": ("log", 0, [1]),
}

for words, (topic, partition, replicas) in MOVES.items():

    @step(f"AlterPartitionReassignments {words}", range(2))
    def _(
        _: World,
        version: int,
        topic: str = topic,
        partition: int = partition,
        replicas: list[int] | None = replicas,
    ) -> Any:  # noqa: ANN401
        return moved(topic, partition, replicas)


@step("ListPartitionReassignments of all", range(1))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return list_partition_reassignments.Request(timeout_ms=5000, topics=None)


@step("ListPartitionReassignments of some, also of what is not there", range(1))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    named = [
        list_partition_reassignments.ListPartitionReassignmentsTopics("log", [0, 99]),
        list_partition_reassignments.ListPartitionReassignmentsTopics("nowhere", [0]),
    ]
    return list_partition_reassignments.Request(timeout_ms=5000, topics=named)


# Features and brokers.


def updated(name: str, level: int, kind: int) -> Any:  # noqa: ANN401
    update = update_features.FeatureUpdateKey(
        feature=name, max_version_level=level, upgrade_type=kind
    )
    return update_features.Request(timeout_ms=5000, feature_updates=[update])


FEATURES = {
    "that nobody knows": ("nobody.knows", 1, 1),
    "to a level above all": ("group.version", 99, 1),
    "below nothing": ("group.version", -1, 1),
    "down without saying so": ("metadata.version", 29, 1),
    "by a kind of change that is none": ("group.version", 1, 9),
    "to an unknown metadata version": ("metadata.version", 500, 1),
    "to metadata that would lose something": ("metadata.version", 20, 2),
    "up by a downgrade": ("group.version", 2, 2),
}

for words, (name, level, kind) in FEATURES.items():

    @step(f"UpdateFeatures {words}", range(1, 3))
    def _(_: World, version: int, name: str = name, level: int = level, kind: int = kind) -> Any:  # noqa: ANN401
        return updated(name, level, kind)


@step("UnregisterBroker of one that is not there", range(1))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return unregister_broker.Request(77)
