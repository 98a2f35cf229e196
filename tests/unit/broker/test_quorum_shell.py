"""A quorum of real nodes: it elects, replicates, survives its leader and catches up."""

import errno

from ottla.model.types import NodeId
from ottla.quorum.election_state import from_json
from tests.unit.broker.quorum_cluster import Cluster, cluster_of

STATE = "/data/__cluster_metadata-0/quorum-state"


def topics(cluster: Cluster) -> list[list[str]]:
    up = [node for node in cluster.nodes.values() if node.is_up]
    return [sorted(node.broker.image.topics_by_name) for node in up]


def agree(cluster: Cluster, *names: str) -> None:
    cluster.until(lambda: all(found == list(names) for found in topics(cluster)))


def test_three_nodes_elect_one_and_know_the_same() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        assert len(cluster.leaders) == 1
        assert cluster.followers[0].create("t") == 0  # The leader decides, whoever is asked.
        agree(cluster, "t")
        states = {from_json(node.disk.read(STATE)) for node in cluster.nodes.values()}
        assert {(state.epoch, state.leader) for state in states} == {
            (cluster.leader.broker.quorum.leader_epoch, NodeId(cluster.leader.number))
        }


def test_a_new_controller_decides_well_within_a_second() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        cluster.leader.create("before")
        agree(cluster, "before")
        dead = cluster.leader
        dead.kill()
        before = cluster.clock.monotonic()
        assert cluster.followers[0].create("after") == 0
        assert cluster.clock.monotonic() - before < 700
        agree(cluster, "after", "before")
        cluster.start(dead.number)
        agree(cluster, "after", "before")
        assert len(cluster.leaders) == 1


def test_without_a_majority_nothing_is_decided() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        leader, (one, other) = cluster.leader, cluster.followers
        one.kill()
        other.kill()
        asked = cluster.loop.create_task(_create(leader, "t"))
        cluster.pass_ms(5000)
        assert not asked.done()
        assert cluster.leaders == []  # It heard nobody for too long.
        cluster.start(one.number)
        cluster.until(asked.done)
        assert "t" in leader.broker.image.topics_by_name


async def _create(node, name: str) -> object:  # noqa: ANN001
    from ottla.protocol.messages import create_topics

    topic = create_topics.CreatableTopic(name, 1, 1)
    return await node.broker.quorum.submit(create_topics.Request([topic]))


def test_a_clean_stop_hands_the_quorum_over() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        leader = cluster.leader
        leader.stop()
        took = cluster.until(lambda: len(cluster.leaders) == 1)
        assert took < 200


def test_a_node_that_was_away_for_long_gets_a_snapshot() -> None:
    small = {"metadata.log.max.record.bytes.between.snapshots": "500"}
    small["metadata.max.retention.bytes"] = "0"
    with cluster_of(3, n1=small, n2=small, n3=small) as cluster:
        cluster.start()
        away = cluster.followers[0]
        away.kill()
        for number in range(12):
            cluster.leader.create(f"t{number:02}")
        cluster.until(lambda: cluster.leader.broker.quorum.log.log_start_offset > 30)
        cluster.start(away.number)
        names = [f"t{number:02}" for number in range(12)]
        agree(cluster, *names)
        assert away.broker.quorum.log.log_start_offset > 30
        assert cluster.leader.create("later") == 0
        agree(cluster, "later", *names)


def test_a_full_disk_of_a_follower_harms_nobody_else() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        sick = cluster.followers[0]
        for _ in range(3):
            sick.disk.fail("append", errno.ENOSPC, path_contains="__cluster_metadata")
        assert cluster.leader.create("t") == 0
        agree(cluster, "t")
        assert sick.broker.failed.done() is False


def test_a_restart_of_all_loses_nothing() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        cluster.leader.create("t")
        for node in cluster.nodes.values():
            node.kill()
            node.disk.cut_power()
        cluster.start()
        agree(cluster, "t")


def test_a_broker_alone_follows_as_an_observer() -> None:
    alone = {"process.roles": "broker", "listeners": "PLAINTEXT://n4:9092"}
    with cluster_of(4, n4=alone) as cluster:
        cluster.start()
        observer = cluster.nodes[4]
        assert not observer.broker.quorum.quorum.is_voter
        assert observer.create("t") == 0
        agree(cluster, "t")
        leader = cluster.leader
        assert leader.number != 4
        leader.kill()
        assert observer.create("u") == 0
        agree(cluster, "t", "u")


def test_a_controller_alone_registers_no_broker() -> None:
    alone = {"process.roles": "controller", "listeners": "CONTROLLER://n3:9093"}
    with cluster_of(3, n3=alone) as cluster:
        cluster.start()
        assert sorted(cluster.leader.broker.image.brokers) == [1, 2]
        assert sorted(cluster.leader.broker.image.controllers) == [1, 2, 3]
        assert cluster.nodes[1].create("t", replicas=2) == 0
