import threading
import time

import pytest

from ottla.client.errors import CannotConnect, Refused
from ottla.client.metadata import UnknownTopic
from ottla.model.types import TopicPartition
from ottla.spark.options import Access
from ottla.spark.sink import cluster as sink_cluster
from ottla.spark.sink.cluster import SinkCluster
from ottla.testing import Broker


def test_a_topic_is_asked_for_once_and_again_when_it_is_old(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create_topic("aging", 2)
    cluster = SinkCluster(Access(broker.bootstrap_servers))
    known = cluster.topic("aging")
    assert len(known.partitions) == 2
    assert cluster.topic("aging") is known
    monkeypatch.setattr(sink_cluster, "TOPIC_S_MAX", 0.0)
    assert cluster.topic("aging") is not known
    cluster.close()


def test_a_topic_that_is_missing_is_told(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink_cluster, "AUTO_CREATE_S_MAX", 0.2)
    cluster = SinkCluster(Access(broker.bootstrap_servers))
    with pytest.raises(UnknownTopic, match="no topic 'missing'"):
        cluster.topic("missing")
    with pytest.raises(Refused, match="name is not allowed"):
        cluster.topic("not allowed")
    cluster.close()


def test_a_topic_is_made_where_brokers_make_topics() -> None:
    with Broker(num_partitions=3) as broker:
        cluster = SinkCluster(Access(broker.bootstrap_servers))
        assert len(cluster.topic("made").partitions) == 3
        cluster.close()


def test_the_leader_is_asked_on_a_connection_of_its_own(broker: Broker) -> None:
    broker.create_topic("led", 2)
    cluster = SinkCluster(Access(broker.bootstrap_servers))
    first = cluster.leader(TopicPartition("led", 0))
    assert cluster.leader(TopicPartition("led", 1)) is first
    cluster.forget_topics()
    assert cluster.leader(TopicPartition("led", 0)) is not first
    cluster.close()


def test_every_producer_has_its_own_id(broker: Broker) -> None:
    cluster = SinkCluster(Access(broker.bootstrap_servers))
    broker.drop("InitProducerId")
    cluster.topic(broker.create_topic("known"))
    ids = {cluster.new_producer()[0] for _ in range(3)}
    assert len(ids) == 3
    cluster.close()


def test_a_broker_that_has_just_started_is_waited_for(broker: Broker) -> None:
    """Apache Kafka has no ids to give in its first moments."""
    cluster = SinkCluster(Access(broker.bootstrap_servers))
    broker.fail("InitProducerId", "COORDINATOR_LOAD_IN_PROGRESS", times=2)
    assert cluster.new_producer()[0] >= 0
    cluster.close()


def test_who_is_patient_waits_for_a_broker_at_the_first_contact_too() -> None:
    with Broker() as broker:
        broker.create_topic("later")
        broker.stop()
        starting = threading.Timer(0.7, broker.start)
        starting.start()
        cluster = SinkCluster(Access(broker.bootstrap_servers), is_patient=True)
        assert len(cluster.topic("later").partitions) == 1
        cluster.close()
        starting.join()


def test_an_address_that_was_mistyped_is_told_at_once() -> None:
    cluster = SinkCluster(Access("127.0.0.1:1"))
    began = time.monotonic()
    with pytest.raises(CannotConnect, match=r"cannot connect to 127\.0\.0\.1:1"):
        cluster.topic("any")
    assert time.monotonic() - began < 1
