"""The intake, with a real client."""

import time

import pytest
from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as Place

from ottla.consumer import intake as module
from ottla.consumer.errors import CannotConsume
from ottla.consumer.intake import HOLD_S, Intake
from ottla.consumer.lanes import PENDING_MAX, Lane, Lanes
from ottla.consumer.settings import consumer_config
from ottla.model.types import TopicPartition
from tests.unit.consumer.mock_cluster import MockCluster

SECONDS_MAX = 20
PLACE = TopicPartition("t", 0)


def started(cluster: MockCluster) -> tuple[Consumer, Lane, Intake]:
    consumer = Consumer(consumer_config(cluster.bootstrap, "g", {}))
    consumer.assign([Place("t", 0, 0)])
    lanes = Lanes()
    lanes.assigned([PLACE])
    lane = lanes.get(PLACE)
    assert lane is not None
    return consumer, lane, Intake(consumer, lanes, ["t"])


def take(intake: Intake, lane: Lane, count: int) -> list[bytes | None]:
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        intake.receive(0.05)
        task = lane.next_task(count)
        lane.untake()
        if len(task.messages) >= count:
            return [message.value for message in task.messages]
    raise AssertionError(f"fewer than {count} records came")


def test_records_arrive_with_all_fields() -> None:
    cluster = MockCluster()
    cluster.write("t", b"a", headers=[("h", b"1")])
    consumer, lane, intake = started(cluster)
    take(intake, lane, 1)
    (message,) = lane.next_task(1).messages
    assert message[:3] == ("t", 0, 0)
    assert (message.key, message.value, message.headers) == (b"k-a", b"a", (("h", b"1"),))
    assert message.timestamp_ms > 0
    assert not message.is_log_append_time
    consumer.close()


def test_a_full_lane_is_paused_and_resumed_when_it_has_room() -> None:
    cluster = MockCluster()
    count = PENDING_MAX + 500
    cluster.write("t", *[b"%d" % number for number in range(count)])
    consumer, lane, intake = started(cluster)
    deadline = time.monotonic() + SECONDS_MAX
    while not lane.is_full and time.monotonic() < deadline:
        intake.receive(0.05)
    assert not intake.regulate(100.0), "a quick handler would make room in a moment"
    assert not lane.is_paused
    assert intake.regulate(100.0 + HOLD_S)
    assert lane.is_paused
    for _ in range(5):
        intake.receive(0.02)
    waiting = lane.next_task(count)
    assert len(waiting.messages) == PENDING_MAX
    assert intake.regulate(200.0)
    assert lane.is_paused
    waiting.done, waiting.is_over = len(waiting.messages), True
    lane.settle()
    assert intake.regulate(201.0)
    assert not lane.is_paused
    rest = take(intake, lane, count - PENDING_MAX)
    assert rest == [b"%d" % number for number in range(PENDING_MAX, count)]
    consumer.close()


def test_records_of_a_revoked_partition_are_dropped() -> None:
    cluster = MockCluster()
    cluster.write("t", b"a")
    consumer = Consumer(consumer_config(cluster.bootstrap, "g", {}))
    consumer.assign([Place("t", 0, 0)])
    Intake(consumer, Lanes(), ["t"]).receive(2.0)
    consumer.close()


@pytest.mark.parametrize(
    ("code", "is_hopeless"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, True),
        (KafkaError._AUTO_OFFSET_RESET, True),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, False),
        (KafkaError._PARTITION_EOF, False),
    ],
)
def test_fatal_errors_end_the_intake_and_others_are_logged_once(
    code: int, is_hopeless: bool, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = MockCluster()
    consumer, _, intake = started(cluster)
    failure = KafkaError(code)
    if is_hopeless:
        with pytest.raises(CannotConsume, match="cannot read t"):
            intake._failed(failure)
    else:
        intake._failed(failure)
        intake._failed(failure)
        told = [item for item in caplog.records if item.name == module.log.name]
        assert len(told) == (code != KafkaError._PARTITION_EOF)
    consumer.close()
