"""A partition with replicas: who hears what, and when."""

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import alter_partition_reassignments as wire
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
        leader.broker.checkpoint()
        follower = cluster.followers()[0]
        cluster.until(lambda: follower.partition().high_watermark == 2)
        follower.broker.checkpoint()
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
