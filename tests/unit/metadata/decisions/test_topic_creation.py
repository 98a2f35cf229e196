from typing import Any

import pytest

from ottla.metadata.decisions.context import ControllerSettings
from ottla.model.errors import ErrorCode
from ottla.model.types import NodeId
from ottla.protocol import metadata_records as records
from ottla.protocol.messages import create_topics as wire
from tests.cpu import cpu_seconds
from tests.unit.metadata.controller_driver import ControllerDriver

Topic, Assignment, Config = (
    wire.CreatableTopic,
    wire.CreatableReplicaAssignment,
    wire.CreatableTopicConfig,
)


def test_a_topic_is_written_before_its_configs_and_these_before_its_partitions() -> None:
    deciding = ControllerDriver()
    topic = Topic("t", 2, 1, [], [Config("retention.ms", "5")])
    response, written = deciding.decide(wire.Request([topic]))
    kinds = [type(record).__name__ for record in written]
    assert kinds == ["TopicRecord", "ConfigRecord", "PartitionRecord", "PartitionRecord"]
    result = response.topics[0]
    assert (result.error_code, result.error_message) == (0, None)
    assert (result.num_partitions, result.replication_factor) == (2, 1)
    assert result.topic_id == written[0].topic_id


def test_a_new_partition_is_led_by_its_first_replica_in_epoch_zero() -> None:
    deciding = ControllerDriver(brokers=3)
    deciding.create("t", 3, 3)
    for partition in deciding.image.topics_by_name["t"].partitions.values():
        assert partition.leader == partition.replicas[0]
        assert partition.isr == partition.replicas
        assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)
        assert partition.directories == tuple(bytes([node]) * 16 for node in partition.replicas)


def test_minus_one_takes_the_brokers_defaults() -> None:
    settings = ControllerSettings(NodeId(1), partitions_default=4, replication_factor_default=2)
    result = ControllerDriver(brokers=2, settings=settings).create("t", -1, -1)
    assert (result.num_partitions, result.replication_factor) == (4, 2)


def test_the_answer_names_every_config_and_where_it_comes_from() -> None:
    settings = ControllerSettings(NodeId(1), broker_configs={"log.retention.hours": "2"})
    deciding = ControllerDriver(settings=settings)
    deciding.write(records.ConfigRecord(4, "", "log.segment.bytes", "2000000"))
    configs = {c.name: c for c in deciding.create("t", cleanup_policy="compact").configs}
    assert (configs["cleanup.policy"].value, configs["cleanup.policy"].config_source) == (
        "compact",
        1,
    )
    assert (configs["segment.bytes"].value, configs["segment.bytes"].config_source) == (
        "2000000",
        3,
    )
    assert configs["retention.ms"].value == "7200000"
    assert list(configs) == sorted(configs)


def test_validate_only_writes_nothing_and_answers_the_same() -> None:
    deciding = ControllerDriver()
    response, written = deciding.decide(wire.Request([Topic("t", 2, 1)], validate_only=True))
    assert response.topics[0].num_partitions == 2
    assert written == []


def test_default_configs_are_described_once_for_all_topics() -> None:
    topics = [
        Topic("a", 1, 1),
        Topic("b", 1, 1, [], [Config("retention.ms", "5")]),
        Topic("c", 1, 1),
    ]
    response, _ = ControllerDriver().decide(wire.Request(topics))
    a, b, c = (topic.configs for topic in response.topics)
    assert a is c
    differing = [two.name for one, two in zip(a, b, strict=True) if one is not two]
    assert differing == ["retention.ms"]


def test_thousands_of_topics_with_configs_of_their_own_cost_little_each() -> None:
    topics = [
        Topic(f"t{number}", 1, 1, [], [Config("retention.ms", str(number))])
        for number in range(2000)
    ]
    response, _ = ControllerDriver(brokers=3).decide(wire.Request(topics))
    assert not any(topic.error_code for topic in response.topics)
    seconds = cpu_seconds(lambda: ControllerDriver(brokers=3).decide(wire.Request(topics)))
    assert seconds < 0.4  # 0.12 s; describing every config of every topic takes 2 s.


def test_thousands_of_duplicate_names_cost_little() -> None:
    names = [f"t{number}" for number in range(5000)] * 2
    topics = [Topic(name, 1, 1) for name in names]
    response, _ = ControllerDriver().decide(wire.Request(topics))
    assert [topic.name for topic in response.topics] == names[:5000]
    seconds = cpu_seconds(lambda: ControllerDriver().decide(wire.Request(topics)))
    assert seconds < 1  # A linear search for each name takes several seconds.


def test_replicas_may_be_given_by_hand() -> None:
    deciding = ControllerDriver(brokers=3)
    topic = Topic("t", -1, -1, [Assignment(1, [3, 1]), Assignment(0, [2, 3])])
    assert deciding.ask(wire.Request([topic])).topics[0].error_code == 0
    partitions = deciding.image.topics_by_name["t"].partitions
    assert [partitions[index].replicas for index in (0, 1)] == [(2, 3), (3, 1)]


@pytest.mark.parametrize(
    ("topic", "code", "sentence"),
    [
        (Topic("there", 1, 1), 36, "Topic 'there' already exists."),
        (Topic("a/b", 1, 1), 17, "Topic name is invalid: 'a/b' contains"),
        (Topic("a_b", 1, 1), 17, "Topic 'a_b' collides with existing topic: a.b"),
        (Topic("__cluster_metadata", 1, 1), 42, "Creation of internal topic"),
        (Topic("t", 0, 1), 37, "Number of partitions was set to an invalid"),
        (Topic("t", -2, 1), 37, "Number of partitions was set to an invalid"),
        (Topic("t", 1, 0), 38, "Replication factor must be larger than 0"),
        (Topic("t", 1, 4), 38, "Unable to replicate the partition 4 time(s): The target"),
        (Topic("t", 1, 1, [], [Config("nope", "1")]), 40, "Unknown topic config name: nope"),
        (Topic("t", 1, 1, [], [Config("retention.ms", None)]), 40, "Null value not supported"),
        (Topic("t", 1, 1, [], [Config("retention.ms", "x")]), 40, "Invalid value x"),
        (Topic("t", 2, -1, [Assignment(0, [1])]), 42, "but numPartitions was not set to -1."),
        (Topic("t", -1, 1, [Assignment(0, [1])]), 42, "but replication factor was not set"),
        (Topic("t", -1, -1, [Assignment(0, [9])]), 39, "includes broker 9, but no such"),
        (Topic("t", -1, -1, [Assignment(0, [1, 1])]), 39, "the broker 1 more than once"),
        (Topic("t", -1, -1, [Assignment(0, [])]), 39, "includes an empty replica list"),
        (Topic("t", -1, -1, [Assignment(0, [1]), Assignment(0, [1])]), 39, "Found multiple"),
        (Topic("t", -1, -1, [Assignment(1, [1])]), 39, "consecutive 0-based integer sequence"),
        (
            Topic("t", -1, -1, [Assignment(0, [1]), Assignment(1, [1, 2])]),
            39,
            "not consistent with previous partitions, which have 1 replica(s).",
        ),
    ],
)
def test_invalid_requests_get_kafkas_errors(
    topic: wire.CreatableTopic, code: int, sentence: str
) -> None:
    deciding = ControllerDriver(brokers=3)
    deciding.create("there")
    deciding.create("a.b")
    response, written = deciding.decide(wire.Request([topic]))
    assert response.topics[0].error_code == code
    assert sentence in response.topics[0].error_message
    assert written == []


def test_one_bad_topic_does_not_fail_the_others() -> None:
    deciding = ControllerDriver()
    topics = [Topic("good", 1, 1), Topic("bad", 0, 1), Topic("twice", 1, 1), Topic("twice", 1, 1)]
    response = deciding.ask(wire.Request(topics))
    codes: dict[Any, int] = {result.name: result.error_code for result in response.topics}
    assert codes == {"good": 0, "bad": 37, "twice": 42}
    assert len(response.topics) == 3
    assert list(deciding.image.topics_by_name) == ["good"]


def test_more_partitions_than_one_batch_holds_are_refused_as_a_whole() -> None:
    reply, written = ControllerDriver().decide(
        wire.Request([Topic("a", 6000, 1), Topic("b", 6000, 1)])
    )
    assert reply.code == ErrorCode.POLICY_VIOLATION
    assert written == []


def test_nothing_is_placed_while_every_broker_is_fenced() -> None:
    deciding = ControllerDriver(brokers=0)
    deciding.register(1)
    result = deciding.create("t")
    assert result.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert "All brokers are currently fenced." in result.error_message
