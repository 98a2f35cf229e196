"""Administration with confluent-kafka (librdkafka)."""

import time

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.conformance.librdkafka import (
    SECONDS_MAX,
    admin,
    consume,
    consumer,
    create,
    error_of,
    produce,
)
from tests.conformance.settling import settle


def configs_of(bootstrap: str, kind: ResourceType, name: str) -> dict[str, ConfigEntry]:
    resource = ConfigResource(kind, name)
    return admin(bootstrap).describe_configs([resource])[resource].result(SECONDS_MAX)


def alter(
    bootstrap: str, topic: str, name: str, value: str | None, operation: AlterConfigOpType
) -> str:
    entry = ConfigEntry(name, value, incremental_operation=operation)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    error = error_of(admin(bootstrap).incremental_alter_configs([resource])[resource])
    settle(bootstrap)
    return error


def delete(bootstrap: str, topic: str) -> None:
    admin(bootstrap).delete_topics([topic])[topic].result(SECONDS_MAX)
    settle(bootstrap)


def test_a_topic_is_created_described_and_deleted(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, partitions=3, retention_ms="1234567")
    client = admin(bootstrap)
    described = client.describe_topics(TopicCollection([topic]))[topic].result(SECONDS_MAX)
    assert [partition.id for partition in described.partitions] == [0, 1, 2]
    assert all(len(p.replicas) == len(p.isr) == 1 for p in described.partitions)
    assert str(described.topic_id) != "AAAAAAAAAAAAAAAAAAAAAA"
    assert topic in client.list_topics(timeout=SECONDS_MAX).topics
    assert configs_of(bootstrap, ResourceType.TOPIC, topic)["retention.ms"].value == "1234567"
    delete(bootstrap, topic)
    again = client.describe_topics(TopicCollection([topic]))[topic]
    assert error_of(again) == "UNKNOWN_TOPIC_OR_PART"


def test_a_topic_made_anew_has_a_new_id_and_no_records(bootstrap: str, topic: str) -> None:
    client = admin(bootstrap)
    ids = set()
    for _ in range(2):
        create(bootstrap, topic)
        assert produce(bootstrap, topic, [b"a", b"b"]) == [0, 1]
        described = client.describe_topics(TopicCollection([topic]))[topic].result(SECONDS_MAX)
        ids.add(str(described.topic_id))
        delete(bootstrap, topic)
    assert len(ids) == 2


@pytest.mark.parametrize(
    ("name", "options", "error"),
    [
        ("bad name", {}, "TOPIC_EXCEPTION"),
        ("..", {}, "TOPIC_EXCEPTION"),
        ("x" * 250, {}, "TOPIC_EXCEPTION"),
        ("no-partitions", {"num_partitions": 0}, "INVALID_PARTITIONS"),
        ("too-many-replicas", {"replication_factor": 2}, "INVALID_REPLICATION_FACTOR"),
        ("unknown-config", {"config": {"no.such": "1"}}, "INVALID_CONFIG"),
        ("bad-config", {"config": {"retention.ms": "soon"}}, "INVALID_CONFIG"),
        ("__cluster_metadata", {}, "INVALID_REQUEST"),
    ],
)
def test_what_cannot_be_created_is_refused(
    bootstrap: str, name: str, options: dict[str, object], error: str
) -> None:
    new = NewTopic(name, **({"num_partitions": 1, "replication_factor": 1} | options))
    assert error_of(admin(bootstrap).create_topics([new])[name]) == error


def test_a_topic_that_exists_is_not_made_again(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    assert error_of(admin(bootstrap).create_topics([NewTopic(topic, 1, 1)])[topic]) == (
        "TOPIC_ALREADY_EXISTS"
    )


def test_names_that_differ_by_a_dot_collide(bootstrap: str, topic: str) -> None:
    dotted, scored = topic.replace("-", "."), topic.replace("-", "_")
    create(bootstrap, dotted)
    assert error_of(admin(bootstrap).create_topics([NewTopic(scored, 1, 1)])[scored]) == (
        "TOPIC_EXCEPTION"
    )


def test_validate_only_creates_nothing(bootstrap: str, topic: str) -> None:
    client = admin(bootstrap)
    future = client.create_topics([NewTopic(topic, 1, 1)], validate_only=True)[topic]
    assert error_of(future) == "NO_ERROR"
    assert topic not in client.list_topics(timeout=SECONDS_MAX).topics


def test_an_unknown_topic_cannot_be_deleted(bootstrap: str, topic: str) -> None:
    assert error_of(admin(bootstrap).delete_topics([topic])[topic]) == "UNKNOWN_TOPIC_OR_PART"


def test_partitions_are_added_and_never_removed(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, partitions=2)
    client = admin(bootstrap)

    def grow(count: int) -> str:
        return error_of(client.create_partitions([NewPartitions(topic, count)])[topic])

    assert grow(5) == "NO_ERROR"
    assert grow(4) == "INVALID_PARTITIONS"
    assert grow(5) == "INVALID_PARTITIONS"
    settle(bootstrap)
    assert len(client.list_topics(topic, timeout=SECONDS_MAX).topics[topic].partitions) == 5
    produce(bootstrap, topic, [b"a"])
    missing = client.create_partitions([NewPartitions("no-such-topic", 2)])["no-such-topic"]
    assert error_of(missing) == "UNKNOWN_TOPIC_OR_PART"


def test_topic_configs_have_values_defaults_and_sources(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, segment_bytes="20000000", cleanup_policy="compact")
    configs = configs_of(bootstrap, ResourceType.TOPIC, topic)
    assert len(configs) >= 30
    assert configs["segment.bytes"].value == "20000000"
    assert configs["segment.bytes"].source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    assert configs["cleanup.policy"].value == "compact"
    assert configs["retention.ms"].value == "604800000"
    assert configs["retention.ms"].source == ConfigSource.DEFAULT_CONFIG.value
    assert not configs["retention.ms"].is_read_only
    assert next(iter(configs["segment.bytes"].synonyms)) == "segment.bytes"


def test_configs_are_set_appended_subtracted_and_deleted(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)

    def policy() -> str:
        return str(configs_of(bootstrap, ResourceType.TOPIC, topic)["cleanup.policy"].value)

    steps = [
        (AlterConfigOpType.APPEND, "compact", "delete,compact"),
        (AlterConfigOpType.SUBTRACT, "delete", "compact"),
        (AlterConfigOpType.SET, "delete", "delete"),
        (AlterConfigOpType.DELETE, None, "delete"),
    ]
    for operation, value, expected in steps:
        assert alter(bootstrap, topic, "cleanup.policy", value, operation) == "NO_ERROR"
        assert policy() == expected


@pytest.mark.parametrize(
    ("name", "value", "operation", "error"),
    [
        ("no.such.config", "1", AlterConfigOpType.SET, "INVALID_CONFIG"),
        ("retention.ms", "abc", AlterConfigOpType.SET, "INVALID_CONFIG"),
        ("retention.ms", "1", AlterConfigOpType.APPEND, "INVALID_CONFIG"),
        ("cleanup.policy", "shred", AlterConfigOpType.SET, "INVALID_CONFIG"),
    ],
)
def test_bad_config_changes_are_refused(
    bootstrap: str, topic: str, name: str, value: str, operation: AlterConfigOpType, error: str
) -> None:
    create(bootstrap, topic)
    assert alter(bootstrap, topic, name, value, operation) == error


def test_configs_of_an_unknown_topic_are_refused(bootstrap: str, topic: str) -> None:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    future = admin(bootstrap).describe_configs([resource])[resource]
    assert error_of(future) == "UNKNOWN_TOPIC_OR_PART"
    assert alter(bootstrap, topic, "retention.ms", "1", AlterConfigOpType.SET) == (
        "UNKNOWN_TOPIC_OR_PART"
    )


def test_a_config_change_takes_effect_at_once(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    produce(bootstrap, topic, [b"x" * 5000])
    changed = alter(bootstrap, topic, "max.message.bytes", "1000", AlterConfigOpType.SET)
    assert changed == "NO_ERROR"
    with pytest.raises(AssertionError, match="MSG_SIZE_TOO_LARGE"):
        produce(bootstrap, topic, [b"x" * 5000])


def test_broker_configs_are_described_and_changed(bootstrap: str) -> None:
    configs = configs_of(bootstrap, ResourceType.BROKER, "1")
    assert configs["log.retention.hours"].value == "168"
    assert configs["node.id"].value == "1"
    assert configs["node.id"].is_read_only
    assert configs["log.dirs"].source == ConfigSource.STATIC_BROKER_CONFIG.value
    entry = ConfigEntry("log.cleaner.threads", "2", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    changed = admin(bootstrap).incremental_alter_configs([resource])[resource]
    assert error_of(changed) == "NO_ERROR"
    deadline = time.monotonic() + SECONDS_MAX
    while (
        described := configs_of(bootstrap, ResourceType.BROKER, "1")["log.cleaner.threads"]
    ).value != "2":
        assert time.monotonic() < deadline, "the change never took effect"
    assert described.source == ConfigSource.DYNAMIC_BROKER_CONFIG.value


def test_a_read_only_broker_config_cannot_be_changed(bootstrap: str) -> None:
    entry = ConfigEntry("node.id", "2", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    changed = admin(bootstrap).incremental_alter_configs([resource])[resource]
    assert error_of(changed) == "INVALID_REQUEST"


def test_records_are_deleted_up_to_an_offset(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    produce(bootstrap, topic, [b"%d" % n for n in range(10)])
    client = admin(bootstrap)
    here = Position(topic, 0, 4)
    assert client.delete_records([here])[here].result(SECONDS_MAX).low_watermark == 4
    assert consume(bootstrap, topic, 1)[0].offset() == 4
    reader = consumer(bootstrap)
    assert reader.get_watermark_offsets(Position(topic, 0), timeout=SECONDS_MAX) == (4, 10)
    reader.close()
    beyond = Position(topic, 0, 11)
    assert error_of(client.delete_records([beyond])[beyond]) == "OFFSET_OUT_OF_RANGE"
    all_of_it = Position(topic, 0, -1)
    assert client.delete_records([all_of_it])[all_of_it].result(SECONDS_MAX).low_watermark == 10


def test_the_cluster_is_described(bootstrap: str) -> None:
    cluster = admin(bootstrap).describe_cluster().result(SECONDS_MAX)
    assert len(cluster.cluster_id) == 22
    assert [(node.id, f"{node.host}:{node.port}") for node in cluster.nodes] == [(1, bootstrap)]
    assert cluster.controller.id == 1


def test_offsets_are_listed(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    produce(bootstrap, topic, [b"a", b"b", b"c"])
    client = admin(bootstrap)

    def offset(spec: OffsetSpec) -> int:
        futures = client.list_offsets({Position(topic, 0): spec})
        return int(next(iter(futures.values())).result(SECONDS_MAX).offset)

    assert offset(OffsetSpec.earliest()) == 0
    assert offset(OffsetSpec.latest()) == 3
    assert offset(OffsetSpec.max_timestamp()) in (0, 1, 2)
    assert offset(OffsetSpec.for_timestamp(0)) == 0
