"""A partition between its staging and its readers: who hears what, and when."""

import errno

import pytest

from ottla.metadata.image.cluster import Topic
from ottla.metadata.image.delta import ImageDelta
from ottla.model.errors import ErrorCode, Refusal
from ottla.records.batch import Batch
from tests.unit.broker.requests import batch, write
from tests.unit.broker.serving import World, serving


class Ear:
    """Hears of an append's end, or of growth."""

    acks_all = True

    def __init__(self) -> None:
        self.heard: list[object] = []

    def appended(self, partition: object) -> None:
        self.heard.append("appended")

    def failed(self, partition: object, code: ErrorCode) -> None:
        self.heard.append(code)

    def grew(self, partition: object) -> None:
        self.heard.append("grew")


def append(world: World, *values: bytes, **options: int) -> tuple[Ear, int]:
    ear = Ear()
    offset, _ = world.partition().append(Batch(batch(*values, **options)), ear)
    return ear, offset


def test_an_append_is_heard_of_when_it_is_flushed() -> None:
    with serving() as world:
        world.topic()
        partition = world.partition()
        one, first = append(world, b"a", b"b")
        two, second = append(world, b"c")
        assert (first, second) == (0, 2)
        assert (partition.high_watermark, one.heard) == (0, [])
        world.end_turn()
        assert one.heard == two.heard == ["appended"]
        assert partition.high_watermark == partition.last_stable_offset == 3


def test_an_append_outside_a_turn_of_the_network_is_flushed_soon() -> None:
    with serving() as world:
        world.topic()
        ear, _ = append(world, b"a")
        world.pass_ms(1)  # No socket was ready.
        assert ear.heard == ["appended"]


def test_those_who_watch_hear_of_each_flush_once() -> None:
    with serving() as world:
        world.topic()
        watching = Ear()
        world.partition().watching[watching] = None
        append(world, b"a")
        append(world, b"b")
        assert watching.heard == []
        world.end_turn()
        assert watching.heard == ["grew"]
        world.end_turn()
        assert watching.heard == ["grew"]


def test_a_refused_append_leaves_nothing_to_flush() -> None:
    with serving() as world:
        world.topic()
        options = {"producer_id": 1, "producer_epoch": 0}
        write(world, b"a", base_sequence=0, **options)
        with pytest.raises(Refusal) as refusal:
            append(world, b"b", base_sequence=5, **options)
        assert refusal.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert world.broker.partitions.staged == []


def test_transactions_are_refused_while_they_are_not_served() -> None:
    with serving() as world:
        world.topic()
        with pytest.raises(Refusal):
            append(
                world, b"a", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=1
            )
        assert world.partition().last_stable_offset == 0


def test_a_failed_write_is_told_to_all_who_staged_and_to_nobody_else() -> None:
    with serving() as world:
        world.topic()
        watching = Ear()
        world.partition().watching[watching] = None
        one, two = append(world, b"a")[0], append(world, b"b")[0]
        world.disk.fail("append", errno.ENOSPC, path_contains="/t-0")
        world.end_turn()
        assert one.heard == two.heard == [ErrorCode.KAFKA_STORAGE_ERROR]
        assert watching.heard == []
        assert world.partition().high_watermark == world.partition().log.staged_end == 0
        three, offset = append(world, b"c")
        world.end_turn()
        assert (offset, three.heard) == (0, ["appended"])


def test_when_a_partition_is_lost_all_who_wait_are_told_once() -> None:
    with serving() as world:
        world.topic()
        partition = world.partition()
        watching = Ear()
        partition.watching[watching] = None
        staged, _ = append(world, b"a")
        topic = world.broker.image.topics_by_name["t"]
        lost = {0: topic.partitions[0]._replace(leader=2)}
        moved = Topic(topic.name, topic.id, lost)
        world.broker.partitions.image_changed(ImageDelta(changed=[(topic, moved)]))
        world.end_turn()
        assert staged.heard == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        assert watching.heard == ["grew"]
        assert partition.log.end_offset == partition.log.staged_end == 0


def test_what_has_to_be_synced_is_committed_in_order() -> None:
    with serving(log_flush_interval_messages=1) as world:
        world.topic()
        world.workers.is_holding = True
        one, _ = append(world, b"a")
        world.end_turn()
        world.pass_ms(5)
        two, _ = append(world, b"b")
        world.end_turn()
        partition = world.partition()
        partition.committed(1)
        assert (one.heard, two.heard) == (["appended"], [])
        assert partition.high_watermark == 1
        world.workers.is_holding = False
        world.pass_ms(50)
        assert two.heard == ["appended"]
        assert one.heard == ["appended"]


def test_leader_epochs_are_compared_with_ours() -> None:
    with serving() as world:
        world.topic()
        partition = world.partition()
        partition.check_epoch(-1)
        partition.check_epoch(0)
        with pytest.raises(Refusal) as newer:
            partition.check_epoch(1)
        assert newer.value.code == ErrorCode.UNKNOWN_LEADER_EPOCH
        partition.lead(4)
        with pytest.raises(Refusal) as older:
            partition.check_epoch(3)
        assert older.value.code == ErrorCode.FENCED_LEADER_EPOCH
        partition.lead(2)
        assert partition.leader_epoch == 4


def test_an_epoch_ends_where_the_next_one_began() -> None:
    with serving() as world:
        world.topic()
        write(world, b"a", b"b")
        partition = world.partition()
        partition.lead(3)
        write(world, b"c")
        assert partition.epoch_end_offset(0) == (0, 2)
        assert partition.epoch_end_offset(2) == (0, 2)
        assert partition.epoch_end_offset(3) == (3, 3)
        assert partition.epoch_end_offset(9) == (-1, -1)


def test_a_log_that_was_cut_by_hand_costs_its_partition_and_no_other() -> None:
    with serving() as world:
        world.topic("t")
        world.topic("u")
        write(world, b"a", topic="t")
        world.restart()
        world.disk.open("/data/t-0/00000000000000000000.log").truncate(0)
        ear, _ = append(world, b"b")
        world.end_turn()
        assert ear.heard == [ErrorCode.KAFKA_STORAGE_ERROR]
        with pytest.raises(Refusal) as refused:
            world.broker.partitions.led("t", bytes(16), 0)
        assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        write(world, b"a", topic="u")
        assert world.broker.partitions.damages == 1
