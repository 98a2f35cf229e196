"""A quorum of real nodes: it elects, replicates, survives its leader and catches up."""

import errno
from functools import partial
from random import Random
from typing import Any

import pytest

from ottla.broker.wire.apis import APIS, Listener
from ottla.model.errors import ErrorCode
from ottla.model.types import Monotonic, NodeId
from ottla.protocol.messages import (
    add_raft_voter,
    begin_quorum_epoch,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    remove_raft_voter,
    update_raft_voter,
    vote,
)
from ottla.quorum import elections
from ottla.quorum.effects import Effect
from ottla.quorum.election_state import ElectionState, from_json
from ottla.quorum.log_view import TOPIC, TOPIC_ID, OffsetAndEpoch
from ottla.quorum.messages import partition_of, vote_request
from ottla.quorum.role_changes import EPOCH_STEPS_MAX
from ottla.quorum.voters import ReplicaKey
from ottla.simulation.clients.breakage import build
from tests.unit.broker.quorum_cluster import Cluster, Node, cluster_of
from tests.unit.broker.serving import serving

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
    return await node.broker.quorum.requests.submit(create_topics.Request([topic]))


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


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EMFILE])
def test_shortage_of_a_follower_harms_nobody_else(error: int) -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        sick = cluster.followers[0]
        for _ in range(3):
            sick.disk.fail("append", error, path_contains="__cluster_metadata")
        assert cluster.leader.create("t") == 0
        agree(cluster, "t")
        assert sick.broker.failed.done() is False


def vote_of(node: Node) -> ElectionState:
    return from_json(node.disk.read(STATE))


def fill(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse each write of its vote, until `monkeypatch` is undone."""
    file = node.broker.quorum.log.election_state
    write = file._write

    def refuse(state: ElectionState) -> None:
        node.disk.fail("append", errno.ENOSPC, path_contains="quorum-state")
        write(state)

    monkeypatch.setattr(file, "_write", refuse)


def test_a_vote_that_cannot_be_written_is_not_given_until_there_is_room() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        dead, (sick, other) = cluster.leader, cluster.followers
        before = vote_of(sick)
        with pytest.MonkeyPatch.context() as monkeypatch:
            fill(sick, monkeypatch)
            dead.kill()
            cluster.pass_ms(20_000)
            assert vote_of(sick) == before
            assert cluster.leaders == []
            assert not sick.broker.failed.done()
            assert len(sick.broker.quorum.shell._events) < 20
            assert len(sick.broker.quorum.shell._tickets) < 20
        cluster.until(lambda: len(cluster.leaders) == 1)
        leader = cluster.leader
        assert vote_of(other).leader == leader.number
        assert leader.create("after") == 0
        agree(cluster, "after")


def test_a_leader_that_cannot_write_of_its_successor_leads_no_more() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        deposed, (one, _) = cluster.leader, cluster.followers
        with pytest.MonkeyPatch.context() as monkeypatch:
            fill(deposed, monkeypatch)
            one.broker.quorum.shell.happened(partial(standing_now, one))
            cluster.until(lambda: bool(cluster.leaders) and deposed not in cluster.leaders)
            assert cluster.leader.create("t") == 0
            asked = cluster.loop.create_task(_create(deposed, "u"))
            cluster.pass_ms(1_000)
            assert vote_of(deposed).leader == deposed.number
        cluster.until(asked.done)
        agree(cluster, "t", "u")


def standing_now(node: Node, now: Monotonic) -> list[Effect]:
    """As if it had won the pre-votes."""
    elections.campaign(node.broker.quorum.quorum, now)
    return node.broker.quorum.quorum.tick(now)


def test_a_node_whose_vote_cannot_be_written_can_be_stopped() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        dead, (sick, _) = cluster.leader, cluster.followers
        with pytest.MonkeyPatch.context() as monkeypatch:
            fill(sick, monkeypatch)
            dead.kill()
            cluster.until(lambda: sick.broker.quorum.shell._is_stuck)
            before = vote_of(sick)
            sick.stop()
        cluster.pass_ms(5_000)
        assert vote_of(sick) == before


def test_a_single_voter_without_room_for_its_state_says_so_at_its_start() -> None:
    with cluster_of(1) as cluster:
        cluster.start()
        cluster.nodes[1].kill()
        cluster.nodes[1].disk.fail("append", errno.ENOSPC, path_contains="quorum-state")
        with pytest.raises(OSError, match="simulated failure"):
            cluster.start()
        cluster.nodes[1].is_up = False


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


QUORUM_REQUESTS = (
    add_raft_voter.Request,
    begin_quorum_epoch.Request,
    end_quorum_epoch.Request,
    fetch.Request,
    fetch_snapshot.Request,
    remove_raft_voter.Request,
    update_raft_voter.Request,
    vote.Request,
)


def hostile(kind: type[Any], version: int, epoch: int, rng: Random) -> Any:  # noqa: ANN401
    """Extreme numbers in a request that is about the metadata log and, often, its present epoch."""
    request = build(kind, version, rng)
    _set(request, cluster_id=None)
    for topic in getattr(request, "topics", []):
        _set(topic, topic_name=TOPIC, topic=TOPIC, name=TOPIC, topic_id=TOPIC_ID)
        topic.partitions = topic.partitions[:1]
        for part in topic.partitions:
            _set(part, partition_index=0, partition=0)
            if rng.random() < 0.7:
                near = epoch + rng.choice((0, 0, 0, 1, -1))
                _set(part, replica_epoch=near, leader_epoch=near, current_leader_epoch=near)
    if hasattr(request, "topics"):
        request.topics = request.topics[:1]
    return request


def _set(message: object, **values: object) -> None:
    for name, value in values.items():
        if hasattr(message, name):
            setattr(message, name, value)


@pytest.mark.parametrize("seed", range(20))
def test_no_request_of_the_quorum_ends_a_node(seed: int) -> None:
    rng = Random(seed)
    with serving() as world:
        for _ in range(60):
            kind = rng.choice(QUORUM_REQUESTS)
            version = rng.choice(kind.VERSIONS)
            if version not in APIS[kind.API_KEY].versions_on(Listener.CONTROLLER):
                continue
            request = hostile(kind, version, world.broker.quorum.leader_epoch, rng)
            world.client("CONTROLLER").send(request, version)
            world.settle()
            assert not world.broker.failed.done(), request
        world.until(lambda: world.broker.quorum.is_leader)
        assert world.broker.quorum.leader_epoch < 1_000
        world.topic("after")


def test_a_vote_of_an_epoch_that_no_quorum_reaches_is_refused() -> None:
    with serving() as world:
        driver = world.broker.quorum
        for epoch in (2**31 - 1, driver.leader_epoch + EPOCH_STEPS_MAX + 1):
            request = vote_request(
                driver.identity.cluster_id,
                epoch,
                ReplicaKey(NodeId(99), b"o" * 16),
                driver.quorum.key,
                OffsetAndEpoch(2**62, epoch),
                pre_vote=False,
            )
            answer = partition_of(world.client("CONTROLLER").ask(request, 2))
            assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert driver.is_leader
