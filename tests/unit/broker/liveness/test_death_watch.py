"""A broker whose process is gone is fenced well before its session ends; one that stalls is not."""

from ottla.model.types import NodeId
from tests.unit.broker.quorum_cluster import cluster_of


def test_a_broker_that_died_is_fenced_at_once() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        cluster.pass_ms(3000)
        dead = cluster.followers[0]
        dead.kill()
        took = cluster.until(lambda: cluster.is_fenced(dead.number))
        assert took < 500


def test_a_new_controller_sees_that_the_old_ones_broker_is_gone() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        dead = cluster.leader
        dead.kill()
        cluster.until(lambda: len(cluster.leaders) == 1)
        took = cluster.until(lambda: cluster.is_fenced(dead.number))
        assert took < 700


def test_one_that_is_not_fenced_yet_is_fenced_once_somebody_else_was_heard() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        cluster.leader.create("t", 3)
        cluster.pass_ms(3000)
        active = cluster.leader.broker.quorum.commits.active
        assert active is not None
        active.controller._sessions._contacted.clear()  # As if it had just begun.
        dead = cluster.followers[0]
        dead.kill()
        took = cluster.until(lambda: cluster.is_fenced(dead.number))
        assert took < 3000  # The next heartbeat of another broker, and not the dead one's session.


def test_a_lost_connection_alone_fences_nobody() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        cluster.pass_ms(3000)
        for _ in range(5):
            cluster.network.reset_some(cluster.followers[0].host, 1.0)
            cluster.pass_ms(1000)
        image = cluster.leader.broker.image
        assert not any(broker.is_fenced for broker in image.brokers.values())


def test_nobody_looks_at_itself_or_at_strangers() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        watch = cluster.leader.broker.death_watch
        watch.connection_closed(NodeId(cluster.leader.number))
        watch.connection_closed(NodeId(42))
        cluster.pass_ms(2000)
        assert not watch._looking_at
        assert not cluster.is_fenced(cluster.leader.number)
