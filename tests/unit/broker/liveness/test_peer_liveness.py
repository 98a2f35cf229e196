"""Who asks for a leader that may be gone waits until that is known; who is fenced stays listed."""

from ottla.broker.liveness.peer_liveness import HELD_MS_MAX
from ottla.client.dialer import Dialer
from ottla.env.network import Address
from ottla.model.types import NodeId
from ottla.protocol.messages import metadata
from tests.unit.broker.quorum_cluster import Cluster, Node, cluster_of


async def ask(node: Node, topic: str) -> metadata.Response:
    address, network = Address(node.host, 9092), node.broker.env.network
    connection = await Dialer("c").dial(network, address, timeout_ms=1000)
    try:
        request = metadata.Request([metadata.MetadataRequestTopic(name=topic)])
        return await connection.ask(request, metadata.Response, timeout_ms=5000)
    finally:
        connection.close()


def leader_of(cluster: Cluster, topic: str) -> Node:
    image = cluster.leader.broker.image
    return cluster.nodes[image.topics_by_name[topic].partitions[0].leader]


def test_nobody_is_sent_to_a_leader_that_has_just_died() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        for number in range(6):
            assert cluster.leader.create(f"t{number}", 3) == 0
        cluster.pass_ms(1000)
        topic = next(f"t{n}" for n in range(6) if leader_of(cluster, f"t{n}") != cluster.leader)
        dead = leader_of(cluster, topic)
        other = next(n for n in cluster.followers if n is not dead)
        dead.kill()
        # It may be fenced within a millisecond.
        cluster.until(lambda: bool(other.broker.peer_liveness.doubted), step_ms=0.05)
        asked_at = cluster.clock.monotonic()
        answer = cluster.run(ask(other, topic))
        leader = answer.topics[0].partitions[0].leader_id
        assert leader not in (-1, dead.number), "a leader that lives"
        assert cluster.clock.monotonic() - asked_at < HELD_MS_MAX
        listed = {broker.node_id for broker in answer.brokers}
        assert listed == {1, 2, 3}, "the dead one is known a little longer"
        cluster.pass_ms(10_000)
        answer = cluster.run(ask(other, topic))
        assert dead.number not in {broker.node_id for broker in answer.brokers}


def test_a_broker_that_comes_back_is_listed_once() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        assert cluster.leader.create("t", 3) == 0
        dead = cluster.followers[0]
        dead.kill()
        cluster.until(lambda: cluster.is_fenced(dead.number))
        cluster.start(dead.number)
        answer = cluster.run(ask(cluster.leader, "t"))
        assert sorted(broker.node_id for broker in answer.brokers) == [1, 2, 3]


def test_a_lost_connection_is_soon_forgotten_if_its_broker_lives() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        for number in range(6):
            assert cluster.leader.create(f"t{number}", 3) == 0
        cluster.pass_ms(1000)
        doubtful = cluster.followers[0]
        cluster.network.reset_some(doubtful.host, 1.0)
        cluster.pass_ms(200)
        for node in cluster.nodes.values():
            assert node.broker.peer_liveness.doubted == frozenset()


def test_a_controller_that_was_replaced_doubts_nobody_who_left_it() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        cluster.pass_ms(3000)
        before = cluster.leader
        cluster.run(before.broker.quorum.hand_over(1000))
        cluster.until(lambda: before not in cluster.leaders and len(cluster.leaders) == 1)
        for _ in range(50):
            cluster.pass_ms(50)
            assert before.broker.peer_liveness.doubted == frozenset()


def test_nobody_waits_for_ever() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        peer_liveness = cluster.leader.broker.peer_liveness
        done: list[float] = []
        peer_liveness.lost(NodeId(42))
        peer_liveness.hold({NodeId(42)}, lambda: done.append(cluster.clock.monotonic()))
        assert not done
        peer_liveness.hold({NodeId(1)}, lambda: done.append(0))
        assert done == [0], "nobody doubts that one"
        cluster.pass_ms(HELD_MS_MAX)
        assert len(done) == 2
        peer_liveness.lost(NodeId(42))
        assert peer_liveness.doubted == frozenset(), "what fails again is no news"
