from collections.abc import Iterator
from dataclasses import replace

import pytest

from ottla.client import protocol
from ottla.env.network import Address
from ottla.spark.errors import DataLoss, SparkError
from ottla.spark.source import fetching
from ottla.spark.source.fetching import Fetcher
from ottla.testing import Broker
from tests.unit.spark.sources import delete_before, fill, manner_for, offsets_in, source_of


@pytest.fixture
def own_broker() -> Iterator[Broker]:
    """For faults: they would hit other tests' requests."""
    with Broker(auto_create_topics_enable=False) as made:
        yield made


def test_a_range_is_fetched_and_no_more(broker: Broker) -> None:
    topic = broker.create_topic("fetching-range")
    fill(broker, topic, 5)
    source = source_of(broker, topic)
    assert offsets_in(Fetcher(source, manner_for(broker), 0, 50)) == [0, 10, 20, 30, 40]
    assert offsets_in(Fetcher(source, manner_for(broker), 15, 31)) == [10, 20, 30]
    assert offsets_in(Fetcher(source, manner_for(broker), 7, 7)) == []


def test_small_fetches_bring_the_same(broker: Broker) -> None:
    topic = broker.create_topic("fetching-small")
    fill(broker, topic, 8)
    fetcher = Fetcher(source_of(broker, topic), manner_for(broker, fetch_bytes=1), 0, 80)
    assert offsets_in(fetcher) == list(range(0, 80, 10))
    assert fetcher.position == 80


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("fault", ["drop", "lose", "moved", "storage"])
def test_trouble_on_the_way_loses_and_repeats_nothing(
    own_broker: Broker, fault: str, times: int
) -> None:
    topic = own_broker.create_topic("trouble")
    fill(own_broker, topic, 6)
    fetcher = Fetcher(source_of(own_broker, topic), manner_for(own_broker, fetch_bytes=1), 0, 60)
    found = []
    for fetched in fetcher.fetches():
        found += [item.batch.base_offset for item in fetched.placed]
        if len(found) == 2:
            match fault:
                case "drop":
                    own_broker.drop("Fetch", times=times)
                case "lose":
                    own_broker.lose_answers("Fetch", times=times)
                case "moved":
                    own_broker.fail("Fetch", "NOT_LEADER_OR_FOLLOWER", times=times)
                case "storage":
                    own_broker.fail("Fetch", "KAFKA_STORAGE_ERROR", times=times)
    assert found == list(range(0, 60, 10))


def test_a_broker_that_is_restarted_is_waited_for(own_broker: Broker) -> None:
    topic = own_broker.create_topic("restarted")
    fill(own_broker, topic, 6)
    fetcher = Fetcher(source_of(own_broker, topic), manner_for(own_broker, fetch_bytes=1), 0, 60)
    found = []
    for fetched in fetcher.fetches():
        found += [item.batch.base_offset for item in fetched.placed]
        if len(found) == 3:
            own_broker.restart()
    assert found == list(range(0, 60, 10))


def test_a_connection_that_the_broker_closed_meanwhile_costs_no_pause(own_broker: Broker) -> None:
    topic = own_broker.create_topic("idle")
    fill(own_broker, topic, 2)
    source, manner = source_of(own_broker, topic), manner_for(own_broker)
    assert offsets_in(Fetcher(source, manner, 0, 20)) == [0, 10]
    own_broker.drop_connections()
    assert offsets_in(Fetcher(source, manner, 0, 20)) == [0, 10]


def test_another_leader_is_found_by_the_addresses_to_begin_with(broker: Broker) -> None:
    topic = broker.create_topic("fetching-elsewhere")
    fill(broker, topic, 1)
    source = replace(source_of(broker, topic), leader=Address("127.0.0.1", 1))
    assert offsets_in(Fetcher(source, manner_for(broker), 0, 10)) == [0]


def test_what_retention_took_is_loss(broker: Broker) -> None:
    topic = broker.create_topic("fetching-retention")
    fill(broker, topic, 4)
    delete_before(broker, topic, 25)
    source = source_of(broker, topic)
    with pytest.raises(DataLoss, match=r"offsets 5 to 39 .* but the log begins at 25 now"):
        offsets_in(Fetcher(source, manner_for(broker), 5, 40))
    lenient = manner_for(broker, fails_on_data_loss=False)
    fetcher = Fetcher(source, lenient, 5, 40)
    assert offsets_in(fetcher) == [20, 30]
    assert offsets_in(Fetcher(source, lenient, 5, 20)) == []


def test_a_log_that_ends_too_early_is_loss(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "TRUNCATED_MS_MAX", 200)
    topic = broker.create_topic("fetching-truncated")
    fill(broker, topic, 1)
    source = source_of(broker, topic)
    with pytest.raises(DataLoss, match=r"offsets 20 to 29 .* but the log ends at 10 now"):
        offsets_in(Fetcher(source, manner_for(broker), 20, 30))
    with pytest.raises(DataLoss, match=r"offsets 10 to 29 .* but the log ends at 10 now"):
        offsets_in(Fetcher(source, manner_for(broker), 0, 30))
    lenient = manner_for(broker, fails_on_data_loss=False)
    assert offsets_in(Fetcher(source, lenient, 0, 30)) == [0]


@pytest.mark.parametrize("is_made_anew", [True, False])
def test_a_topic_that_was_deleted_is_loss_even_if_made_anew(
    broker: Broker, is_made_anew: bool
) -> None:
    topic = broker.create_topic(f"fetching-gone-{is_made_anew}")
    fill(broker, topic, 1)
    source = source_of(broker, topic)
    broker.delete_topic(topic)
    if is_made_anew:
        broker.create_topic(topic)
        fill(broker, topic, 3)
    with pytest.raises(DataLoss, match="deleted, or made anew"):
        offsets_in(Fetcher(source, manner_for(broker), 0, 10))
    assert offsets_in(Fetcher(source, manner_for(broker, fails_on_data_loss=False), 0, 10)) == []


def test_trouble_that_does_not_end_is_told(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = broker.create_topic("fetching-endless")
    fill(broker, topic, 1)
    monkeypatch.setattr(fetching, "DEADLINE_MS", 300)
    source = replace(source_of(broker, topic), leader=Address("127.0.0.1", 1))
    manner = manner_for(broker)
    lost = replace(manner, access=replace(manner.access, bootstrap="127.0.0.1:1"))
    with pytest.raises(SparkError, match=r"fetching-endless-0 cannot be read: cannot connect"):
        offsets_in(Fetcher(source, lost, 0, 10))


def test_a_batch_that_is_too_large_for_a_task_is_told(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = broker.create_topic("fetching-large")
    broker.produce(topic, "x" * 200_000)
    monkeypatch.setattr(protocol, "FRAME_BYTES_MAX", 100_000)
    sentence = r"fetching-large-0 cannot be read: .* answers with 200\d+ bytes.* batch is too large"
    with pytest.raises(SparkError, match=sentence):
        offsets_in(Fetcher(source_of(broker, topic), manner_for(broker), 0, 1))


def test_a_task_that_stops_early_leaves_no_answer_for_the_next(broker: Broker) -> None:
    topic = broker.create_topic("fetching-early")
    fill(broker, topic, 6)
    source, manner = source_of(broker, topic), manner_for(broker, fetch_bytes=1)
    fetches = Fetcher(source, manner, 0, 60).fetches()
    assert next(fetches).placed[0].batch.base_offset == 0
    fetches.close()
    assert offsets_in(Fetcher(source, manner, 30, 60)) == [30, 40, 50]


def test_a_leader_whose_name_has_no_address_for_a_moment_is_looked_for(broker: Broker) -> None:
    topic = broker.create_topic("fetching-nameless")
    fill(broker, topic, 1)
    source = replace(source_of(broker, topic), leader=Address("no.such.host.invalid", 9092))
    assert offsets_in(Fetcher(source, manner_for(broker), 0, 10)) == [0]
