"""A partition with replicas: who hears what, and when."""

import pytest

from ottla.client.errors import ConnectionLost
from ottla.model.errors import ErrorCode
from ottla.model.types import TopicPartition
from ottla.protocol.messages import alter_partition_reassignments as wire
from ottla.protocol.messages import incremental_alter_configs, list_offsets
from ottla.records.batch import Batch
from ottla.records.record import Record, build_batch
from tests.unit.broker.replicating import Cluster, Node, replicating


class Ear:
    def __init__(self, acks_all: bool) -> None:
        self.acks_all = acks_all
        self.heard: list[object] = []

    def appended(self, partition: object) -> None:
        self.heard.append("appended")

    def failed(self, partition: object, code: ErrorCode) -> None:
        self.heard.append(code)


def append(cluster: Cluster, node: Node, acks_all: bool, **producer: int) -> Ear:
    ear = Ear(acks_all)
    batch = build_batch([Record(0, 0, None, b"v")], **producer)  # type: ignore[arg-type]
    node.partition().append(Batch(batch), ear)
    node.broker.env.network.before_sending()
    return ear


def test_who_wants_all_replicas_waits_and_who_wants_one_does_not() -> None:
    with replicating() as cluster:
        cluster.topic()
        leader = cluster.leader()
        one, every = append(cluster, leader, False), append(cluster, leader, True)
        assert (one.heard, every.heard) == (["appended"], [])
        cluster.until(lambda: every.heard == ["appended"])
        assert leader.partition().high_watermark == 2


def test_who_waits_for_a_leader_that_is_none_any_more_is_told() -> None:
    with replicating() as cluster:
        cluster.topic()
        leader = cluster.leader()
        for node in cluster.followers():
            node.kill()
        waiting = append(cluster, leader, True)
        cluster.notice_death(leader)  # Wrongly; but then it leads no more.
        assert waiting.heard == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        assert not leader.partition().is_leader


def test_the_high_watermark_is_remembered() -> None:
    with replicating() as cluster:
        cluster.topic()
        leader = cluster.leader()
        cluster.produce(leader, b"a", b"b")
        cluster.run(leader.broker.partitions.checkpoint())
        follower = cluster.followers()[0]
        cluster.until(lambda: follower.partition().high_watermark == 2)
        cluster.run(follower.broker.partitions.checkpoint())
        follower.kill()
        cluster.notice_death(follower)
        follower.start()
        assert follower.partition().high_watermark == 2


def test_a_topic_that_gets_replicas_keeps_its_records() -> None:
    with replicating() as cluster:
        cluster.topic(factor=1)
        first = cluster.leader()
        assert cluster.produce(first, b"a").error_code == 0
        nodes = [first.number, *(n for n in cluster.nodes if n != first.number)]
        moved = wire.ReassignablePartition(0, nodes)
        cluster.log.decide(wire.Request(topics=[wire.ReassignableTopic("t", [moved])]))
        cluster.until(lambda: len(cluster.state().isr) == 3)
        assert cluster.produce(cluster.leader(), b"b").error_code == 0
        for node in cluster.nodes.values():
            assert node.values() == [b"a", b"b"]
        back = wire.ReassignablePartition(0, nodes[1:2])
        cluster.log.decide(wire.Request(topics=[wire.ReassignableTopic("t", [back])]))
        cluster.pass_ms(50)
        assert cluster.produce(cluster.leader(), b"c").error_code == 0
        assert cluster.leader().number == nodes[1]


def test_a_batch_that_is_sent_once_more_is_answered_though_nothing_comes_after_it() -> None:
    with replicating() as cluster:
        cluster.topic()
        producer = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0}
        first = append(cluster, cluster.leader(), True, **producer)
        cluster.until(lambda: first.heard == ["appended"])
        again = append(cluster, cluster.leader(), True, **producer)
        assert again.heard == ["appended"]
        dead = cluster.leader()
        dead.kill()
        cluster.notice_death(dead)
        moved = append(cluster, cluster.leader(), True, **producer)
        cluster.until(lambda: moved.heard == ["appended"])
        assert cluster.leader().partition().log.end_offset == 1


def reassign(cluster: Cluster, nodes: list[int]) -> None:
    moved = wire.ReassignablePartition(0, nodes)
    cluster.log.decide(wire.Request(topics=[wire.ReassignableTopic("t", [moved])]))
    cluster.pass_ms(50)


def latest(cluster: Cluster, node: Node) -> int:
    asked = list_offsets.ListOffsetsPartition(0, timestamp=-1)
    topic = list_offsets.ListOffsetsTopic("t", [asked])
    answer = cluster.ask(node, list_offsets.Request(topics=[topic]), list_offsets.Response)
    part = answer.topics[0].partitions[0]
    assert part.error_code == 0
    return int(part.offset)


def test_high_watermark_stays_when_a_partition_grows_to_more_replicas_than_are_in_sync() -> None:
    with replicating(min_insync_replicas=2) as cluster:
        cluster.topic(factor=1)
        first = cluster.leader()
        assert cluster.produce(first, b"a", b"b").error_code == 0
        others = [node for node in cluster.nodes.values() if node is not first]
        for node in others:
            node.kill()  # The new replicas do not catch up for a while.
        reassign(cluster, [first.number, *(node.number for node in others)])
        assert len(cluster.state().replicas) == 3
        assert cluster.state().isr == (first.number,)
        assert latest(cluster, first) == 2
        assert len(cluster.fetch(first).records) > 0
        reassign(cluster, [first.number])
        assert latest(cluster, first) == 2
        reassign(cluster, [first.number, *(node.number for node in others)])
        assert latest(cluster, first) == 2


def test_high_watermark_of_a_partition_without_leader_is_kept_and_checkpointed() -> None:
    with replicating(min_insync_replicas=2) as cluster:
        cluster.topic(factor=1)
        first = cluster.leader()
        assert cluster.produce(first, b"a", b"b").error_code == 0
        cluster.deny(first)  # Wrongly: it registers again in a moment.
        cluster.until(lambda: len(first.broker.partitions) == 0)
        cluster.run(first.broker.partitions.checkpoint())
        directory = first.broker.directories.online()[0]
        assert directory.checkpoints.high_watermarks == {TopicPartition("t", 0): 2}
        reassign(cluster, [first.number, *(n for n in cluster.nodes if n != first.number)])
        assert first.partition().high_watermark == 2


def test_a_new_leader_syncs_what_it_has_not_on_disk() -> None:
    with replicating(brokers=2) as cluster:
        cluster.topic(factor=2, flush_messages="1")
        leader, (follower,) = cluster.leader(), cluster.followers()
        assert cluster.produce(leader, b"a").error_code == 0
        log = follower.partition().log
        more = Batch(build_batch([Record(1, 0, None, b"b")], base_offset=1))
        more.assign(1, cluster.state().leader_epoch)
        log.append([more], cluster.clock.wall())
        assert log.recovery_point == 1
        leader.kill()
        cluster.notice_death(leader)
        cluster.until(lambda: cluster.state().leader == follower.number)
        cluster.pass_ms(500)
        assert log.recovery_point == 2
        assert follower.partition().high_watermark == 2


def test_a_killed_follower_of_a_synced_topic_starts_with_all_it_has_on_disk() -> None:
    """Its first fetch says what it has, and its leader counts on that."""
    with replicating(brokers=2) as cluster:
        cluster.topic(factor=2)
        leader, (follower,) = cluster.leader(), cluster.followers()
        assert cluster.produce(leader, b"a").error_code == 0
        change = incremental_alter_configs.AlterableConfig("flush.messages", 0, "1")
        resource = incremental_alter_configs.AlterConfigsResource(2, "t", [change])
        cluster.log.decide(incremental_alter_configs.Request([resource]))
        cluster.pass_ms(20)
        assert follower.partition().log.recovery_point == 0
        follower.kill()
        follower.start()
        log = follower.partition().log
        assert (log.end_offset, log.recovery_point) == (1, 1)


def test_a_leader_whose_file_was_cut_by_hand_gives_up_the_partition_alone() -> None:
    """The first append after a start reads the segment's first header."""
    with replicating(brokers=2) as cluster:
        cluster.topic(factor=2)
        leader, (follower,) = cluster.leader(), cluster.followers()
        assert cluster.produce(leader, b"a").error_code == 0
        log = leader.partition().log
        log.segments[-1]._first_timestamp = None  # As after a start.
        leader.disk.open(log.segments[-1].log_path).truncate(0)
        assert cluster.produce(leader, b"b").error_code == ErrorCode.KAFKA_STORAGE_ERROR
        cluster.until(lambda: cluster.leader() is follower)
        assert cluster.produce(follower, b"c").error_code == 0
        cluster.until(lambda: len(leader.broker.partitions) == 1)
        cluster.until(lambda: leader.values() == [b"a", b"c"])


@pytest.mark.parametrize("is_asked_by_follower", [False, True])
def test_a_sealed_segment_that_cannot_be_sent_is_given_up_and_others_serve(
    is_asked_by_follower: bool,
) -> None:
    """What is found only while an answer is sent can end no more than that connection."""
    with replicating(brokers=3) as cluster:
        cluster.topic(factor=2, internal_segment_bytes="5000")
        values = [b"%d" % number + b"." * 1000 for number in range(12)]
        leader, (follower,) = cluster.leader(), cluster.followers()
        for value in values:
            assert cluster.produce(leader, value).error_code == 0
        cluster.until(lambda: follower.values() == values)
        path = leader.partition().log.segments[0].log_path
        leader.disk.open(path).truncate(leader.disk.size(path) // 2)
        if is_asked_by_follower:
            reassign(cluster, [leader.number, *{1, 2, 3} - {leader.number}])
        else:
            with pytest.raises(ConnectionLost):
                cluster.fetch(leader)
        cluster.until(lambda: leader.broker.partitions.damages == 1)
        cluster.until(lambda: cluster.leader() is follower and follower.partition().is_leader)
        assert len(bytes(cluster.fetch(follower).records)) > 4000
        cluster.until(lambda: set(cluster.state().isr) == set(cluster.state().replicas))
        cluster.until(lambda: leader.values() == values)
