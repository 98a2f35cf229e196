import pytest

from ottla.client.blocking import Client, Outgoing
from ottla.client.groups import Groups
from ottla.model.types import TopicPartition
from ottla.spark.errors import BadOption
from ottla.spark.source.discovery import Discovery
from ottla.testing import Broker
from tests.unit.spark.sources import address_of, delete_before, fill, names, options_for


def test_partitions_are_those_of_the_names(broker: Broker) -> None:
    broker.create_topic("found-a", partitions=2)
    broker.create_topic("found-b")
    with Discovery(options_for(broker, "", subscribe="found-b,found-a")) as found:
        assert names(found.partitions()) == ["found-b-0", "found-a-0", "found-a-1"]
    with Discovery(options_for(broker, "", subscribePattern="found-.")) as found:
        assert names(found.partitions()) == ["found-a-0", "found-a-1", "found-b-0"]
    with Discovery(options_for(broker, "", assign='{"found-a": [1]}')) as found:
        assert names(found.partitions()) == ["found-a-1"]
    wrong = options_for(broker, "", assign='{"found-a": [7]}')
    with Discovery(wrong) as found, pytest.raises(BadOption, match="has no partition 7"):
        found.partitions()


def test_a_pattern_never_means_kafka_s_own_topics(broker: Broker) -> None:
    topic = broker.create_topic("found-group")
    with Client(broker.bootstrap_servers) as client:
        client.run(Groups(client.cluster).commit("some", {TopicPartition(topic, 0): 0}))
        client.run(client.cluster.refresh(None))
        assert "__consumer_offsets" in client.cluster.metadata.topics
    with Discovery(options_for(broker, "", subscribePattern=".*")) as found:
        assert "__consumer_offsets" not in {place.topic for place in found.partitions()}


def test_a_topic_that_is_missing_is_named(broker: Broker) -> None:
    sentence = "there is no topic 'not-there'"
    options = options_for(broker, "not-there")
    with Discovery(options) as found, pytest.raises(BadOption, match=sentence):
        found.check_topics()


def test_partitions_are_looked_up_anew_after_a_while_only(broker: Broker) -> None:
    topic = broker.create_topic("found-grown")
    with Discovery(options_for(broker, topic)) as found:
        assert len(found.partitions()) == 1
        with Client(broker.bootstrap_servers) as client:
            client.run(client.admin.create_partitions(topic, 3))
        assert len(found.partitions()) == 1
        assert len(found.partitions(is_anew=True)) == 3
    with Discovery(options_for(broker, topic, **{"kafka.metadata.max.age.ms": "0"})) as found:
        found.partitions()
        broker.delete_topic(topic)
        assert found.partitions() == []


def test_sources_say_where_to_fetch(broker: Broker) -> None:
    topic = broker.create_topic("found-source")
    place = TopicPartition(topic, 0)
    with Discovery(options_for(broker, topic)) as found:
        source = found.sources([place])[place]
    assert source.leader == address_of(broker)
    assert len(source.topic_id) == 16
    assert any(source.topic_id)


def test_bounds_are_resolved(broker: Broker) -> None:
    topic = broker.create_topic("found-bounds")
    place = TopicPartition(topic, 0)
    with Client(broker.bootstrap_servers) as client:
        client.write(topic, [Outgoing(b"x", timestamp_ms=1_700_000_000_000 + n) for n in range(9)])
    delete_before(broker, topic, 2)

    def resolved(**more: str) -> int:
        options = options_for(broker, topic, is_stream=True, **more)
        with Discovery(options) as found:
            return found.resolve(options.starting, found.partitions())[place]

    def json(offset: int) -> str:
        return f'{{"{topic}": {{"0": {offset}}}}}'

    assert resolved(startingOffsets="earliest") == 2
    assert resolved(startingOffsets="latest") == 9
    assert resolved(startingOffsets=json(5)) == 5
    assert resolved(startingOffsets=json(-2)) == 2
    assert resolved(startingTimestamp="1700000000006") == 6
    assert resolved(startingOffsetsByTimestamp=json(1_700_000_000_007)) == 7
    late = {"startingTimestamp": "1800000000000"}
    assert resolved(**late, startingOffsetsByTimestampStrategy="latest") == 9
    with pytest.raises(BadOption, match="no record at or after 1800000000000 ms"):
        resolved(**late)
    with pytest.raises(BadOption, match="holds the offsets 2 to 9, and 10 lies outside"):
        resolved(startingOffsets=json(10))
    assert resolved(startingOffsets=json(10), failOnDataLoss="false") == 9
    assert resolved(startingOffsets=json(0), failOnDataLoss="false") == 2
    with pytest.raises(BadOption, match="it does not say where found-bounds-0"):
        resolved(startingOffsets='{"other": {"0": 1}}')
    both = f'{{"{topic}": {{"0": 5, "1": 5}}}}'
    with pytest.raises(BadOption, match="found-bounds-1 is not among what is read"):
        resolved(startingOffsets=both)


def test_one_request_asks_for_all_ends(broker: Broker) -> None:
    topic = broker.create_topic("found-ends", partitions=5)
    fill(broker, topic, 2)
    with Discovery(options_for(broker, topic)) as found:
        places = found.partitions()
        broker.fail("ListOffsets", "NOT_LEADER_OR_FOLLOWER")
        assert [found.ends(places)[place] for place in places] == [20, 0, 0, 0, 0]


def test_an_address_where_nobody_answers_is_named(broker: Broker) -> None:
    options = options_for(broker, "x", **{"kafka.bootstrap.servers": "127.0.0.1:1"})
    with Discovery(options) as found:
        sentence = r"option 'kafka.bootstrap.servers' is '127.0.0.1:1': cannot connect"
        with pytest.raises(BadOption, match=sentence):
            found.partitions()


def test_a_group_is_told_how_far_a_stream_is(broker: Broker) -> None:
    topic = broker.create_topic("found-commit")
    fill(broker, topic, 1)
    place = TopicPartition(topic, 0)
    with Discovery(options_for(broker, topic)) as found:
        found.commit("spark-group", {place: 4})
    with Client(broker.bootstrap_servers) as client:
        offsets = client.run(Groups(client.cluster).offsets("spark-group"))
    assert offsets[place].offset == 4
