from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from ottla.client.blocking_connection import BlockingConnection
from ottla.client.errors import Refused, RequestTimeout
from ottla.model.errors import ErrorCode
from ottla.model.types import TopicPartition
from ottla.spark.options import Access
from ottla.spark.sink.cluster import SinkCluster
from ottla.spark.sink.producer import SinkProducer, SinkSettings
from ottla.testing import Broker
from tests.unit.spark.sink_world import body, values

NewProducer = Callable[..., SinkProducer]


@pytest.fixture
def producer(broker: Broker) -> Iterator[NewProducer]:
    with ExitStack() as opened:

        def make(**settings: int) -> SinkProducer:
            chosen = SinkSettings(**{"delivery_ms_max": 5000, **settings})
            access = Access(broker.bootstrap_servers, request_ms_max=chosen.request_ms_max)
            cluster = SinkCluster(access)
            opened.callback(cluster.close)
            return SinkProducer(cluster, chosen)

        yield make
        broker.clear_faults()


def write(made: SinkProducer, topic: str, start: int, end: int) -> list[bytes]:
    """One record a batch; two partitions in turn."""
    written = [b"%d" % number for number in range(start, end)]
    for number, value in enumerate(written):
        made.write(TopicPartition(topic, number % 2), body(value))
    return written


def both(written: list[bytes]) -> list[bytes]:
    return written[0::2] + written[1::2]


def test_batches_arrive_once_and_in_order(broker: Broker, producer: NewProducer) -> None:
    topic = broker.create_topic("in-order", 2)
    made = producer()
    written = write(made, topic, 0, 100)
    made.flush()
    assert values(broker, topic) == both(written)


@pytest.mark.parametrize("fault", ["lose_answers", "drop"])
def test_a_connection_that_breaks_costs_neither_a_row_nor_order(
    broker: Broker, producer: NewProducer, fault: str
) -> None:
    topic = broker.create_topic(f"broken-{fault}", 2)
    made = producer()
    written = write(made, topic, 0, 20)
    getattr(broker, fault)("Produce", times=1)
    written += write(made, topic, 20, 60)
    getattr(broker, fault)("Produce", times=1)
    made.flush()
    assert values(broker, topic) == both(written)


def test_a_refusal_that_passes_is_tried_again_in_order(
    broker: Broker, producer: NewProducer
) -> None:
    topic = broker.create_topic("refused", 2)
    made = producer()
    written = write(made, topic, 0, 10)
    broker.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=3)
    written += write(made, topic, 10, 30)
    made.flush()
    assert values(broker, topic) == both(written)


def test_the_first_batch_is_waited_for(broker: Broker, producer: NewProducer) -> None:
    """A broker takes any number from a producer it never saw: a second batch could overtake."""
    topic = broker.create_topic("first", 2)
    made = producer()
    broker.fail("Produce", "NOT_ENOUGH_REPLICAS", times=1)
    written = write(made, topic, 0, 12)
    made.flush()
    assert values(broker, topic) == both(written)


def test_a_refusal_for_good_is_raised(broker: Broker, producer: NewProducer) -> None:
    topic = broker.create_topic("refused-for-good", 2)
    made = producer()
    broker.fail("Produce", "TOPIC_AUTHORIZATION_FAILED", times=9)
    write(made, topic, 0, 2)
    with pytest.raises(Refused, match="cannot write to partition 0 of topic 'refused-for-good'"):
        made.flush()


def test_time_is_over_at_some_point(broker: Broker, producer: NewProducer) -> None:
    topic = broker.create_topic("too-late", 2)
    made = producer(delivery_ms_max=300, request_ms_max=100)
    write(made, topic, 0, 4)
    made.flush()
    broker.delay("Produce", 2, times=20)
    write(made, topic, 4, 8)
    with pytest.raises(RequestTimeout):
        made.flush()


def test_a_batch_that_is_too_large_is_cut_until_it_fits(
    broker: Broker, producer: NewProducer
) -> None:
    topic = broker.create_topic("small", 1, {"max.message.bytes": 2000})
    made = producer()
    records = [b"%d" % number * 40 for number in range(100, 200)]
    place = TopicPartition(topic, 0)
    made.write(place, body(*records))
    made.write(place, body(b"last"))
    made.flush()
    assert values(broker, topic) == [*records, b"last"]
    assert made.batch_bytes_max[topic] < 4000
    made.write(place, body(bytes(3000)))
    with pytest.raises(Refused, match="3070 bytes which exceeds"):
        made.flush()


def test_batches_out_of_sequence_that_were_never_written_go_on_in_the_next_epoch(
    broker: Broker, producer: NewProducer
) -> None:
    topic = broker.create_topic("forgotten", 2)
    made = producer()
    written = write(made, topic, 0, 10)
    made.flush()
    # At the first attempt and at three more.
    broker.fail("Produce", "OUT_OF_ORDER_SEQUENCE_NUMBER", times=4)
    written += write(made, topic, 10, 12)
    made.flush()
    written += write(made, topic, 12, 20)
    made.flush()
    assert values(broker, topic) == both(written)


def test_batch_that_may_be_written_is_not_sent_under_another_epoch(
    broker: Broker, producer: NewProducer
) -> None:
    """Written, its answer lost; then a deposed leader says that it is out of sequence."""
    topic = broker.create_topic("deposed", 1)
    place = TopicPartition(topic, 0)
    made = producer()
    made.write(place, body(b"first"))
    made.flush()
    broker.lose_answers("Produce", times=1)
    broker.fail("Produce", "OUT_OF_ORDER_SEQUENCE_NUMBER", times=2)
    made.write(place, body(b"second"))
    made.flush()
    assert values(broker, topic) == [b"first", b"second"]


@pytest.mark.parametrize(
    "code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND]
)
def test_batch_that_was_refused_after_it_was_written_is_not_sent_under_another_epoch(
    broker: Broker, producer: NewProducer, monkeypatch: pytest.MonkeyPatch, code: ErrorCode
) -> None:
    """A leader that is deposed refuses what it has replicated; then another is out of sequence."""
    topic = broker.create_topic(f"refused-after-{code.name.lower()}", 1)
    place = TopicPartition(topic, 0)
    made = producer()
    made.write(place, body(b"first"))
    made.flush()
    receive, refused = BlockingConnection.receive, []

    def refusing(connection: BlockingConnection, *arguments: Any) -> Any:  # noqa: ANN401
        answer = receive(connection, *arguments)
        if not refused and hasattr(answer, "responses"):
            refused.append(answer)
            answer.responses[0].partition_responses[0].error_code = code
            broker.fail("Produce", "OUT_OF_ORDER_SEQUENCE_NUMBER", times=2)
        return answer

    monkeypatch.setattr(BlockingConnection, "receive", refusing)
    made.write(place, body(b"second"))
    made.flush()
    assert len(refused) == 1
    assert values(broker, topic) == [b"first", b"second"]
