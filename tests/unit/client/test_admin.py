"""Admin requests as they go out, and what their answers become."""

import pytest

from ottla.client.admin import Admin, Operation, ResourceType
from ottla.client.errors import NotServed, Refused
from ottla.client.metadata import UnknownTopic
from ottla.model.errors import ErrorCode
from ottla.model.types import NodeId, TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages import (
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    incremental_alter_configs,
)
from tests.unit.client.fake_broker import World


def test_a_topic_is_created_with_what_was_asked_for() -> None:
    world = World()
    result = create_topics.CreatableTopicResult("u", b"u" * 16, num_partitions=3)
    world.broker.script[ApiKey.CREATE_TOPICS] = [
        lambda request, version: create_topics.Response(0, [result])
    ]

    async def work() -> None:
        made = await Admin(world.cluster()).create_topic(
            "u", partitions=3, configs={"retention.ms": "1"}
        )
        assert made.num_partitions == 3
        asked = world.broker.requests[-1][2].topics[0]
        assert (asked.num_partitions, asked.replication_factor) == (3, -1)
        assert (asked.configs[0].name, asked.configs[0].value) == ("retention.ms", "1")

    world.run(work)


def test_assignments_leave_the_counts_to_themselves() -> None:
    world = World()
    world.broker.script[ApiKey.CREATE_TOPICS] = [
        lambda request, version: create_topics.Response(
            0, [create_topics.CreatableTopicResult("u")]
        )
    ]

    async def work() -> None:
        await Admin(world.cluster()).create_topic(
            "u", partitions=9, assignments={0: [NodeId(1), NodeId(2)]}
        )
        asked = world.broker.requests[-1][2].topics[0]
        assert (asked.num_partitions, asked.replication_factor) == (-1, -1)
        assert asked.assignments[0].broker_ids == [1, 2]

    world.run(work)


def test_a_refusal_carries_the_brokers_words() -> None:
    world = World()
    result = create_topics.CreatableTopicResult(
        "u", error_code=ErrorCode.INVALID_REPLICATION_FACTOR, error_message="only 1 broker"
    )
    world.broker.always[ApiKey.CREATE_TOPICS] = lambda request, version: create_topics.Response(
        0, [result]
    )

    async def work() -> None:
        with pytest.raises(Refused, match="only 1 broker"):
            await Admin(world.cluster()).create_topic("u", replication_factor=3)

    world.run(work)


def test_a_controller_that_has_moved_is_asked_again() -> None:
    world = World()
    moved = create_topics.CreatableTopicResult("u", error_code=ErrorCode.NOT_CONTROLLER)
    made = create_topics.CreatableTopicResult("u")
    world.broker.script[ApiKey.CREATE_TOPICS] = [
        lambda request, version: create_topics.Response(0, [moved]),
        lambda request, version: create_topics.Response(0, [made]),
    ]

    async def work() -> None:
        await Admin(world.cluster()).create_topic("u")
        assert world.broker.count(ApiKey.CREATE_TOPICS) == 2

    world.run(work)


@pytest.mark.parametrize("version_end", [6, 7])
def test_a_topic_is_deleted_by_name_in_every_version(version_end: int) -> None:
    world = World()
    world.broker.ranges[ApiKey.DELETE_TOPICS] = range(1, version_end)
    world.broker.script[ApiKey.DELETE_TOPICS] = [
        lambda request, version: delete_topics.Response(
            0, [delete_topics.DeletableTopicResult("t")]
        )
    ]

    async def work() -> None:
        await Admin(world.cluster()).delete_topic("t")
        request = world.broker.requests[-1][2]
        assert [*request.topic_names, *(item.name for item in request.topics)] == ["t"]

    world.run(work)


def test_what_is_not_there_cannot_be_deleted() -> None:
    world = World()
    gone = delete_topics.DeletableTopicResult("t", error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    world.broker.always[ApiKey.DELETE_TOPICS] = lambda request, version: delete_topics.Response(
        0, [gone]
    )

    async def work() -> None:
        with pytest.raises(UnknownTopic):
            await Admin(world.cluster()).delete_topic("t")
        assert world.clock.monotonic() < 100

    world.run(work)


def test_partitions_are_added_up_to_a_number() -> None:
    world = World()
    world.broker.script[ApiKey.CREATE_PARTITIONS] = [
        lambda request, version: create_partitions.Response(
            0, [create_partitions.CreatePartitionsTopicResult("t")]
        )
    ]

    async def work() -> None:
        await Admin(world.cluster()).create_partitions("t", 4)
        asked = world.broker.requests[-1][2].topics[0]
        assert (asked.count, asked.assignments) == (4, None)

    world.run(work)


def test_records_are_deleted_at_the_partitions_leader() -> None:
    world = World()
    result = delete_records.DeleteRecordsPartitionResult(0, 5)
    world.broker.script[ApiKey.DELETE_RECORDS] = [
        lambda request, version: delete_records.Response(
            0, [delete_records.DeleteRecordsTopicResult("t", [result])]
        )
    ]

    async def work() -> None:
        await Admin(world.cluster()).delete_records({TopicPartition("t", 0): 5})
        assert world.broker.requests[-1][2].topics[0].partitions[0].offset == 5

    world.run(work)


def test_topics_are_described_in_order_and_an_unknown_one_is_named() -> None:
    world = World()
    world.broker.topics.update({"b": 1, "a": 2})

    async def work() -> None:
        admin = Admin(world.cluster())
        assert [topic.name for topic in await admin.describe_topics()] == ["a", "b", "t"]
        assert world.broker.requests[-1][2].allow_auto_topic_creation is False
        with pytest.raises(UnknownTopic, match="'x'"):
            await admin.describe_topics(["a", "x"])

    world.run(work)


def test_a_broker_is_asked_for_its_own_configs() -> None:
    world = World()
    found = [describe_configs.DescribeConfigsResourceResult(name) for name in ("b", "a")]

    async def work() -> None:
        other = world.add_broker(2)
        await other.start()
        other.script[ApiKey.DESCRIBE_CONFIGS] = [
            lambda request, version: describe_configs.Response(
                0, [describe_configs.DescribeConfigsResult(configs=found)]
            )
        ]
        configs = await Admin(world.cluster()).describe_configs(ResourceType.BROKER, "2")
        assert [config.name for config in configs] == ["a", "b"]
        assert world.broker.count(ApiKey.DESCRIBE_CONFIGS) == 0

    world.run(work)


def test_old_brokers_are_not_asked_for_documentation_which_they_cannot_give() -> None:
    world = World()
    world.broker.ranges[ApiKey.DESCRIBE_CONFIGS] = range(1, 3)
    world.broker.script[ApiKey.DESCRIBE_CONFIGS] = [
        lambda request, version: describe_configs.Response(
            0, [describe_configs.DescribeConfigsResult()]
        )
    ]

    async def work() -> None:
        admin = Admin(world.cluster())
        assert await admin.describe_configs(ResourceType.TOPIC, "t", documentation=True) == []

    world.run(work)


def test_configs_are_altered_together() -> None:
    world = World()
    world.broker.script[ApiKey.INCREMENTAL_ALTER_CONFIGS] = [
        lambda request, version: incremental_alter_configs.Response(
            0, [incremental_alter_configs.AlterConfigsResourceResponse()]
        )
    ]

    async def work() -> None:
        changes = [(Operation.SET, "a", "1"), (Operation.DELETE, "b", None)]
        await Admin(world.cluster()).alter_configs(ResourceType.TOPIC, "t", changes)
        (asked,) = world.broker.requests[-1][2].resources
        assert [(item.config_operation, item.name, item.value) for item in asked.configs] == [
            (0, "a", "1"),
            (1, "b", None),
        ]

    world.run(work)


def test_the_cluster_its_disks_and_its_features_are_described() -> None:
    world = World()
    broker = describe_cluster.DescribeClusterBroker(1, "broker1", 9092)
    world.broker.script[ApiKey.DESCRIBE_CLUSTER] = [
        lambda request, version: describe_cluster.Response(cluster_id="c", brokers=[broker])
    ]
    world.broker.script[ApiKey.DESCRIBE_LOG_DIRS] = [
        lambda request, version: describe_log_dirs.Response(
            results=[describe_log_dirs.DescribeLogDirsResult(log_dir="/d")]
        )
    ]

    async def work() -> None:
        admin = Admin(world.cluster())
        assert (await admin.describe_cluster()).cluster_id == "c"
        assert [item.log_dir for item in await admin.log_dirs(NodeId(1))] == ["/d"]
        assert (await admin.features()).error_code == 0
        with pytest.raises(NotServed):
            await admin.quorum()

    world.run(work)
