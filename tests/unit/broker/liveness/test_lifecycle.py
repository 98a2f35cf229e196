"""A broker in its controller's eyes: registered, unfenced, without a disk, gone."""

import asyncio
import errno
from typing import Any

import pytest

from ottla.broker.controller.quorum_driver import QuorumDriver
from ottla.broker.node.broker import Broker
from ottla.broker.replicas.directories import ReplicaDirectories
from ottla.env.channels import SocketChannel
from ottla.model.types import NodeId
from ottla.protocol.messages import broker_registration, unregister_broker
from ottla.simulation.world.clock import VirtualClock
from ottla.simulation.world.sockets import SimulatedSocket
from tests.unit.broker.quorum_cluster import cluster_of
from tests.unit.broker.requests import write
from tests.unit.broker.serving import CONTROLLER, serving

SESSION_MS = 9000  # The default of broker.session.timeout.ms.


def test_a_started_broker_is_registered_and_unfenced() -> None:
    with serving(broker_rack="r1") as world:
        node = world.broker.image.brokers[1]
        assert not node.is_fenced
        assert node.rack == "r1"
        assert (node.endpoints["PLAINTEXT"].host, node.endpoints["PLAINTEXT"].port) == (
            "broker",
            9092,
        )
        assert node.epoch == world.broker.lifecycle.broker_epoch
        assert set(node.directories) == set(world.broker.directories.identities.directory_ids())
        controller = world.broker.image.controllers[1]
        assert controller.endpoints[CONTROLLER].port == 9093


def test_every_start_is_a_new_life() -> None:
    with serving() as world:
        first = world.broker.lifecycle.broker_epoch
        incarnation = world.broker.image.brokers[1].incarnation_id
        world.restart()
        assert world.broker.lifecycle.broker_epoch > first
        assert world.broker.image.brokers[1].incarnation_id != incarnation


def test_a_single_voter_is_heard_once_there_are_more(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as world:
        world.pass_ms(10_000)
        heard_at = world.broker.lifecycle.session._heard_at
        assert world.broker.now - heard_at >= 10_000
        monkeypatch.setattr(QuorumDriver, "is_alone", False)
        world.pass_ms(world.broker.settings.broker_heartbeat_interval_ms)
        assert world.broker.lifecycle.session._heard_at > heard_at


def test_a_broker_that_stops_hands_its_partitions_back() -> None:
    with serving() as world:
        world.topic("t", 2)
        write(world, b"a")
        epoch = world.partition().leader_epoch
        world.stop()
        assert world.broker.image.brokers[1].is_fenced or all(
            part.leader == -1 for part in world.broker.image.topics_by_name["t"].partitions.values()
        )
        world.start()
        assert world.partition().leader_epoch > epoch
        assert write(world, b"b") == 1


def test_a_broker_that_is_unregistered_while_it_lives_registers_again() -> None:
    with serving() as world:
        world.topic("t")
        write(world, b"a")
        before = world.broker.lifecycle.broker_epoch
        assert world.client().ask(unregister_broker.Request(1), 0).error_code == 0
        world.until(lambda: world.broker.lifecycle.broker_epoch > before)
        world.settle()
        assert not world.broker.image.brokers[1].is_fenced
        assert write(world, b"b") == 1


def test_a_lost_disk_is_told_at_once() -> None:
    with serving(directories=["/data-0", "/data-1"]) as world:
        world.topic("t", 2)
        [lost] = [d for d in world.broker.directories.all() if d.path == "/data-1"]
        log = next(iter(lost.logs.values()))
        world.broker.directories.write_failed(log, OSError(errno.EIO, "told so"))
        world.settle()
        leaders = {
            index: part.leader
            for index, part in world.broker.image.topics_by_name["t"].partitions.items()
        }
        assert leaders == {log.topic_partition.partition: -1, 1 - log.topic_partition.partition: 1}


def test_a_disk_that_comes_back_brings_its_partitions_back() -> None:
    with serving(directories=["/data-0", "/data-1"]) as world:
        world.topic("t", 2)
        for index in (0, 1):
            write(world, b"a", partition=index)
        world.pass_ms(90_000)
        [lost] = [d for d in world.broker.directories.all() if d.path == "/data-1"]
        log = next(iter(lost.logs.values()))
        world.broker.directories.write_failed(log, OSError(errno.EIO, "told so"))
        world.settle()
        world.restart()
        for index in (0, 1):
            assert write(world, b"b", partition=index) == 1


def test_a_lost_disk_is_told_when_the_controllers_own_disk_has_room_again() -> None:
    with serving(directories=["/data-0", "/data-1"]) as world:
        world.topic("t", 2)
        [lost] = [d for d in world.broker.directories.all() if d.path == "/data-1"]
        log = next(iter(lost.logs.values()))
        world.settle()
        world.disk.fail("append", errno.ENOSPC, path_contains="__cluster_metadata")
        world.broker.directories.write_failed(log, OSError(errno.EIO, "told so"))
        index = log.topic_partition.partition
        assert world.broker.image.topics_by_name["t"].partitions[index].leader == 1
        world.pass_ms(1500)
        assert world.broker.image.topics_by_name["t"].partitions[index].leader == -1
        assert not world.broker.failed.done()


def test_a_broker_that_stops_hands_over_before_it_closes_its_doors() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        stopping = cluster.followers[0]
        stopping.stop()
        assert cluster.is_fenced(stopping.number)


def test_the_last_of_a_cluster_stops_soon_though_nobody_lets_it_go() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        last, other = cluster.followers
        cluster.leader.kill()
        other.kill()
        before = cluster.clock.monotonic()
        last.stop()
        assert cluster.clock.monotonic() - before < 5000


def test_a_broker_that_comes_back_at_once_is_taken_for_the_new_one_it_is() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        again = cluster.followers[0]
        epoch = again.broker.lifecycle.broker_epoch
        again.kill()
        cluster.start(again.number)
        assert again.broker.lifecycle.broker_epoch > epoch
        assert not cluster.is_fenced(again.number)


def test_heartbeats_keep_a_session_alive() -> None:
    short = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
    with cluster_of(3, n1=short, n2=short, n3=short) as cluster:
        cluster.start()
        cluster.pass_ms(20_000)
        assert not any(cluster.is_fenced(number) for number in cluster.nodes)


def test_a_heartbeat_without_an_answer_is_sent_again_before_the_session_ends() -> None:
    """The network forgot its connection, and told neither end; the controller stays the same."""
    with cluster_of(3) as cluster:
        cluster.start()
        cluster.pass_ms(3000)
        follower = cluster.followers[0]
        connection = follower.broker.quorum.requests.heartbeats._connection
        assert connection is not None
        assert isinstance(connection._channel, SocketChannel)
        end = connection._channel._socket
        assert isinstance(end, SimulatedSocket)
        end.other.fall_silent()
        for _ in range(2 * SESSION_MS // 100):
            cluster.pass_ms(100)
            assert not cluster.is_fenced(follower.number)


def test_a_broker_whose_machine_slept_may_be_fenced_until_it_is_heard_again() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        cluster.pass_ms(3000)
        broker = cluster.followers[0].broker
        assert not broker.lifecycle.may_be_fenced
        assert isinstance(broker.env.clock, VirtualClock)
        broker.env.clock.slept_ms += 2 * SESSION_MS
        assert broker.lifecycle.may_be_fenced
        cluster.pass_ms(5000)
        assert not broker.lifecycle.may_be_fenced


def test_a_new_controller_hears_everyone_at_once() -> None:
    rare = {"broker.heartbeat.interval.ms": "5000"}
    with cluster_of(3, n1=rare, n2=rare, n3=rare) as cluster:
        cluster.start()
        cluster.pass_ms(3000)
        dead = cluster.leader
        dead.kill()
        cluster.until(lambda: len(cluster.leaders) == 1)
        active = cluster.leader.broker.quorum.commits.active
        assert active is not None
        living = [NodeId(number) for number in cluster.nodes if number != dead.number]
        took = cluster.until(lambda: all(map(active.controller._sessions.has_contacted, living)))
        assert took < 300


def test_a_stop_does_not_wait_for_the_next_heartbeats_of_other_brokers() -> None:
    rare = {"broker.heartbeat.interval.ms": "5000"}
    with cluster_of(3, n1=rare, n2=rare, n3=rare) as cluster:
        cluster.start()
        cluster.leader.create("t", replicas=3)
        for node in (cluster.followers[0], cluster.leader):
            cluster.pass_ms(1000)
            began = node.broker.now
            cluster.run(node.broker.lifecycle.hand_over())
            assert node.broker.now - began < 1000
            assert cluster.is_fenced(node.number)


def test_a_session_counts_from_the_sending_of_a_heartbeat_and_not_from_its_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The controller heard it soon after it was sent; the answer may have come by a slow way."""
    with cluster_of(3) as cluster:
        cluster.start()
        cluster.pass_ms(3000)
        broker = cluster.followers[0].broker
        submit = broker.quorum.requests.submit

        async def slowly(request: Any, origin: object) -> Any:  # noqa: ANN401
            assert origin is None, "a heartbeat is the broker's own"
            answer = await submit(request)
            await asyncio.sleep(SESSION_MS * 2 / 3 / 1000)
            return answer

        monkeypatch.setattr(broker.quorum.requests, "submit", slowly)
        sent_at = broker.env.clock.counting_sleep()
        cluster.run(broker.lifecycle.heartbeat())
        assert broker.lifecycle.session._heard_at - sent_at < 100


@pytest.mark.parametrize("is_noted", [True, False])
def test_a_process_whose_damage_cannot_be_noted_does_not_say_that_it_is_whole(
    is_noted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[int] = []

    async def give_up(_: ReplicaDirectories, broker_epoch: int) -> bool:
        said.append(broker_epoch)
        return is_noted

    async def submit(broker: Broker, request: object) -> object:
        if isinstance(request, broker_registration.Request):
            said.append(request.previous_broker_epoch)
        return await broker.quorum.requests.submit(request)

    with serving() as world:
        epoch = world.broker.broker_epoch
        monkeypatch.setattr(ReplicaDirectories, "give_up", give_up)
        monkeypatch.setattr(Broker, "submit", submit)
        world.restart()
        assert said == [epoch, epoch if is_noted else -1]
