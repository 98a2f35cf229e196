# ruff: noqa: ANN401  Requests are of whatever class their API has.

from typing import Any

import pytest

from ottla.metadata.configs.alteration import Operation
from ottla.metadata.decisions.brokers import Died
from ottla.metadata.image.cluster import BROKER_RESOURCE, NO_LEADER, TOPIC_RESOURCE, Partition
from ottla.metadata.image.features import ELR_VERSION
from ottla.model.types import NodeId
from ottla.protocol.messages import alter_configs, incremental_alter_configs, update_features
from ottla.protocol.metadata_records import ClearElrRecord, ConfigRecord
from tests.unit.metadata.controller_driver import ControllerDriver

MIN_ISR = "min.insync.replicas"
TWO, THREE = NodeId(2), NodeId(3)


def with_elr(*topics: str) -> ControllerDriver:
    """Topics on three brokers; the first is the ISR, and the last left it below the minimum."""
    deciding = ControllerDriver(brokers=3, features={ELR_VERSION: 1})
    deciding.write(ConfigRecord(BROKER_RESOURCE, "", MIN_ISR, "2"))
    for topic in topics:
        deciding.create(topic, 1, 3, min_insync_replicas="2")
    for node in (TWO, THREE):
        deciding.ask(Died(node, deciding.epochs[node]))
    for topic in topics:
        assert (partition(deciding, topic).isr, partition(deciding, topic).elr) == ((1,), (3,))
    return deciding


def partition(deciding: ControllerDriver, topic: str) -> Partition:
    return deciding.image.topics_by_name[topic].partitions[0]


def set_incrementally(kind: int, name: str, value: str | None) -> Any:
    operation = Operation.DELETE if value is None else Operation.SET
    config = incremental_alter_configs.AlterableConfig(MIN_ISR, operation, value)
    resource = incremental_alter_configs.AlterConfigsResource(kind, name, [config])
    return incremental_alter_configs.Request([resource])


def replaced(kind: int, name: str, value: str | None) -> Any:
    configs = [] if value is None else [alter_configs.AlterableConfig(MIN_ISR, value)]
    return alter_configs.Request([alter_configs.AlterConfigsResource(kind, name, configs)])


@pytest.mark.parametrize("request_of", [set_incrementally, replaced])
@pytest.mark.parametrize("value", ["1", "3", None])
def test_another_minimum_of_a_topic_clears_its_elr_alone(request_of: Any, value: str) -> None:
    deciding = with_elr("t", "other")
    reply, written = deciding.decide(request_of(TOPIC_RESOURCE, "t", value))
    assert reply.responses[0].error_code == 0
    assert written == [ConfigRecord(TOPIC_RESOURCE, "t", MIN_ISR, value), ClearElrRecord("t")]
    deciding.write(*written)
    assert partition(deciding, "t").elr == ()
    assert partition(deciding, "other").elr == (3,)


@pytest.mark.parametrize("request_of", [set_incrementally, replaced])
def test_another_minimum_of_the_cluster_clears_every_elr(request_of: Any) -> None:
    deciding = with_elr("t", "other")
    deciding.ask(request_of(BROKER_RESOURCE, "", "1"))
    assert deciding.written[-1] == ClearElrRecord("")
    assert partition(deciding, "t").elr == partition(deciding, "other").elr == ()


def test_a_replica_that_was_eligible_under_a_higher_minimum_is_not_elected() -> None:
    """The leader commits alone once the minimum is one: the other lacks those records."""
    deciding = with_elr("t")
    deciding.ask(set_incrementally(TOPIC_RESOURCE, "t", "1"))
    deciding.ask(Died(NodeId(1), deciding.epochs[1]))
    deciding.register(3, previous_broker_epoch=deciding.epochs[3])
    deciding.heartbeat(3)
    assert partition(deciding, "t").leader == NO_LEADER
    assert partition(deciding, "t").elr == (1,)


def test_the_same_minimum_and_another_config_leave_the_elr() -> None:
    deciding = with_elr("t")
    _, written = deciding.decide(set_incrementally(TOPIC_RESOURCE, "t", "2"))
    assert written == []
    config = incremental_alter_configs.AlterableConfig("retention.ms", Operation.SET, "5")
    resource = incremental_alter_configs.AlterConfigsResource(TOPIC_RESOURCE, "t", [config])
    deciding.ask(incremental_alter_configs.Request([resource]))
    assert partition(deciding, "t").elr == (3,)


def test_without_the_feature_no_elr_is_cleared() -> None:
    deciding = ControllerDriver()
    deciding.create("t")
    _, written = deciding.decide(set_incrementally(TOPIC_RESOURCE, "t", "1"))
    assert written == [ConfigRecord(TOPIC_RESOURCE, "t", MIN_ISR, "1")]


def test_a_leaderless_partition_keeps_its_elr_until_an_election() -> None:
    """It commits nothing until then; an ISR of the lower minimum clears the ELR."""
    deciding = with_elr("t")
    deciding.ask(Died(NodeId(1), deciding.epochs[1]))
    deciding.ask(set_incrementally(TOPIC_RESOURCE, "t", "1"))
    assert (partition(deciding, "t").isr, partition(deciding, "t").elr) == ((), (1, 3))
    assert partition(deciding, "t").last_known_elr == (1,)
    deciding.register(3, previous_broker_epoch=deciding.epochs[3])
    deciding.heartbeat(3)
    elected = partition(deciding, "t")
    assert (elected.leader, elected.isr, elected.elr) == (3, (3,), ())


@pytest.mark.parametrize("level", [0, 1])
def test_turning_the_feature_off_or_on_clears_every_elr(level: int) -> None:
    deciding = with_elr("t", "other")
    if level:
        deciding.image.features.pop(ELR_VERSION)  # As left by a controller that clears nothing.
    kind = 1 if level else 2
    update = update_features.FeatureUpdateKey(ELR_VERSION, level, upgrade_type=kind)
    reply = deciding.ask(update_features.Request(feature_updates=[update]))
    assert reply.error_code == 0
    assert partition(deciding, "t").elr == partition(deciding, "other").elr == ()


def test_a_leaderless_partition_keeps_its_elr_when_the_feature_is_turned_off() -> None:
    deciding = with_elr("t")
    deciding.ask(Died(NodeId(1), deciding.epochs[1]))
    for level, kind in ((0, 2), (1, 1), (0, 2)):
        update = update_features.FeatureUpdateKey(ELR_VERSION, level, upgrade_type=kind)
        assert deciding.ask(update_features.Request(feature_updates=[update])).error_code == 0
        deciding.register(2, previous_broker_epoch=deciding.epochs[2])
        deciding.heartbeat(2)  # Another broker, unfenced in the meantime.
        assert (partition(deciding, "t").isr, partition(deciding, "t").elr) == ((), (1, 3))
    deciding.register(3, previous_broker_epoch=deciding.epochs[3])
    deciding.heartbeat(3)
    elected = partition(deciding, "t")
    assert (elected.leader, elected.isr, elected.elr) == (3, (3,), ())
