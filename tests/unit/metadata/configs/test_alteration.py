"""Changes to configs, with the results of Apache Kafka 4.3.1."""

import pytest

from ottla.metadata.configs.alteration import (
    Operation,
    altered,
    check_broker_configs,
    check_topic_configs,
)
from ottla.metadata.configs.catalogue import TOPIC_CONFIGS
from ottla.model.errors import ErrorCode, Refusal


def after(operation: Operation, operand: str | None, current: str | None) -> str | None:
    return altered(TOPIC_CONFIGS, "cleanup.policy", operation, current=current, operand=operand)


def test_operations_on_a_list_start_from_its_default() -> None:
    assert after(Operation.APPEND, "compact", None) == "delete,compact"
    assert after(Operation.SUBTRACT, "delete", None) == ""
    assert after(Operation.APPEND, "compact", "compact") == "compact"
    assert after(Operation.SUBTRACT, "delete", "compact,delete") == "compact"
    assert after(Operation.SET, "compact", "delete") == "compact"
    assert after(Operation.DELETE, None, "delete") is None


def test_only_a_list_can_be_appended_to() -> None:
    with pytest.raises(Refusal, match="not LIST"):
        altered(TOPIC_CONFIGS, "retention.ms", Operation.APPEND, current=None, operand="1")


@pytest.mark.parametrize(
    "configs",
    [
        {"cleanup.policy": ""},
        {"cleanup.policy": "compact,compact"},
        {"cleanup.policy": "compact, delete"},
        {"retention.ms": " 5 "},
        {"leader.replication.throttled.replicas": "*"},
        {"leader.replication.throttled.replicas": "0:1,1:2"},
        {"leader.replication.throttled.replicas": ""},
        {"internal.segment.bytes": "100"},
        {"preallocate": "TRUE"},
        {"remote.storage.enable": "false"},
        {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "5"},
    ],
)
def test_topic_configs_that_kafka_allows_are_accepted(configs: dict[str, str]) -> None:
    check_topic_configs(configs)


@pytest.mark.parametrize(
    "configs",
    [
        {"cleanup.policy": "x"},
        {"cleanup.policy": "compact,"},
        {"retention.ms": "abc"},
        {"retention.ms": "-2"},
        {"retention.ms": ""},
        {"nope": "1"},
        {"max.compaction.lag.ms": "0"},
        {"leader.replication.throttled.replicas": "none"},
        {"remote.storage.enable": "true"},
        {"segment.bytes": "100"},
        {"compression.gzip.level": "0"},
        {"message.timestamp.type": "createtime"},
        {"min.cleanable.dirty.ratio": "2"},
        {"preallocate": "yes"},
        {"min.compaction.lag.ms": "6", "max.compaction.lag.ms": "5"},
    ],
)
def test_topic_configs_that_kafka_refuses_are_refused(configs: dict[str, str]) -> None:
    with pytest.raises(Refusal) as caught:
        check_topic_configs(configs)
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    assert caught.value.message


def test_the_brokers_own_lag_counts_where_the_topic_sets_none() -> None:
    defaults = {"log.cleaner.max.compaction.lag.ms": "5"}
    with pytest.raises(Refusal, match="conflict"):
        check_topic_configs({"min.compaction.lag.ms": "6"}, defaults)


def test_brokers_accept_dynamic_and_unknown_configs() -> None:
    check_broker_configs({"log.retention.ms": "1000", "nope": "1"}, is_cluster_default=True)
    check_broker_configs({"max.connections": "5"}, is_cluster_default=False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num.partitions", "2"),
        ("log.retention.ms", "abc"),
        ("log.retention.ms", "0"),
        ("listeners", "PLAINTEXT://:1"),
        ("ssl.keystore.location", "x"),
        ("log.roll.hours", "1"),
    ],
)
def test_brokers_refuse_configs_that_need_a_restart(name: str, value: str) -> None:
    with pytest.raises(Refusal) as caught:
        check_broker_configs({name: value}, is_cluster_default=True)
    assert caught.value.code is ErrorCode.INVALID_REQUEST


def test_a_listener_stays_where_it_was_at_start() -> None:
    with pytest.raises(Refusal, match="at start"):
        check_broker_configs({"listeners": "PLAINTEXT://:1"}, is_cluster_default=False)
