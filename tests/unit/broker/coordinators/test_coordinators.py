"""Coordinators of a broker: made with their topic, loaded, reloaded, never guessing."""

import errno
from typing import Any

import pytest

from ottla.broker.coordinators.machine_partition import MachinePartition
from ottla.groups.placement import OFFSETS_TOPIC, partition_of
from ottla.model.errors import ErrorCode
from ottla.protocol.messages import find_coordinator, heartbeat, offset_commit, offset_fetch
from tests.unit.broker.grouping import QUICK, commit, fetch, find, stable
from tests.unit.broker.replicating import Cluster, Node, replicating
from tests.unit.broker.serving import serving
from tests.unit.groups.driving import GROUP, joining


def test_the_topic_is_made_on_first_use_as_kafka_makes_it() -> None:
    with serving(**QUICK) as world:
        assert OFFSETS_TOPIC not in world.broker.image.topics_by_name
        assert find(world).coordinators[0].node_id == 1
        assert len(world.broker.image.topics_by_name[OFFSETS_TOPIC].partitions) == 3
        configs = world.broker.image.config_of(2, OFFSETS_TOPIC)
        assert configs == {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": "104857600",
        }


def test_it_has_as_many_replicas_as_was_set_or_is_not_made(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serving(**QUICK, offsets_topic_replication_factor=2) as world:
        for _ in range(2):
            answer = find(world).coordinators[0]
            assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert OFFSETS_TOPIC not in world.broker.image.topics_by_name
    told = [line for line in caplog.messages if "coordinators wait" in line]
    assert len(told) == 1
    assert "Unable to replicate the partition 2 time(s)" in told[0]


def test_a_broker_that_is_down_or_not_there_yet_has_its_replica() -> None:
    with replicating(offsets_topic_num_partitions=1) as cluster:
        cluster.nodes[3].kill()
        cluster.notice_death(cluster.nodes[3])
        assert factor_of_first_use(cluster) == 3
    with replicating(2, offsets_topic_num_partitions=1) as cluster:
        assert factor_of_first_use(cluster) == 2
    with replicating(2, offsets_topic_num_partitions=1) as cluster:
        cluster.nodes[1].quorum.voter_count = 3
        assert factor_of_first_use(cluster) == 0, "not made before the third broker is there"


def factor_of_first_use(cluster: Cluster) -> int:
    request = find_coordinator.Request(coordinator_keys=["g"])
    cluster.ask(cluster.nodes[1], request, find_coordinator.Response)
    cluster.pass_ms(50)
    made = cluster.log.image.topics_by_name.get(OFFSETS_TOPIC)
    return len(made.partitions[0].replicas) if made else 0


def test_two_that_ask_at_once_get_the_same_topic() -> None:
    with serving(**QUICK) as world:
        answers: list[int] = []
        for _ in range(2):
            world.broker.groups.create_topic(lambda: answers.append(1))
        world.until(lambda: len(answers) == 2)


def test_offsets_survive_a_restart_and_a_power_cut_once_synced() -> None:
    with serving(**QUICK, log_flush_interval_messages=1) as world:
        world.topic("t")
        find(world)
        assert commit(world, 5) == 0
        world.restart()
        world.until(lambda: fetch(world)[1] == 0)
        assert fetch(world) == (5, 0)
        assert commit(world, 6) == 0
        world.lose_power()
        world.until(lambda: fetch(world)[1] == 0)
        assert fetch(world) == (6, 0)


def test_while_it_loads_no_offset_is_never_the_answer() -> None:
    with serving(**QUICK) as world:
        world.topic("t")
        find(world)
        commit(world, 5)
        world.stop()
        world.start()
        world.workers.is_holding = True  # Before the loading, which the start only began.
        assert fetch(world) == (-1, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        assert commit(world, 9) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        world.workers.is_holding = False
        world.until(lambda: fetch(world) == (5, 0))


def test_a_full_disk_refuses_commits_and_loses_none() -> None:
    with serving(**QUICK) as world:
        world.topic("t")
        find(world)
        assert commit(world, 5) == 0
        room, world.disk.capacity_bytes = world.disk.capacity_bytes, 0
        assert commit(world, 6) == ErrorCode.NOT_COORDINATOR, "it was full before anybody looked"
        world.disk.capacity_bytes = room
        world.pass_ms(2000)
        world.until(lambda: fetch(world)[1] == 0)
        assert fetch(world) == (5, 0)
        assert commit(world, 7) == 0


def test_a_silent_member_is_out_after_its_session() -> None:
    with serving(**QUICK) as world:
        client, generation, member = stable(world)
        beat = heartbeat.Request(GROUP, generation, member)
        world.pass_ms(9_000)
        assert client.ask(beat).error_code == 0
        world.pass_ms(10_001)
        assert client.ask(beat).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_goes_on_after_a_restart() -> None:
    with serving(**QUICK) as world:
        _, generation, member = stable(world)
        world.restart()
        beat = heartbeat.Request(GROUP, generation, member)
        world.until(lambda: world.client().ask(beat).error_code == 0)


def test_offsets_of_a_deleted_topic_are_gone() -> None:
    with serving(**QUICK) as world:
        world.topic("t")
        find(world)
        commit(world, 5)
        world.delete("t")
        world.settle()
        assert fetch(world) == (-1, 0)
        world.topic("t")
        assert fetch(world) == (-1, 0)


def test_offsets_expire_when_it_is_looked_for_them() -> None:
    settings = {"offsets_retention_minutes": 1, "offsets_retention_check_interval_ms": 30_000}
    with serving(**QUICK, **settings) as world:
        world.topic("t")
        find(world)
        commit(world, 5)
        world.pass_ms(59_000)
        assert fetch(world) == (5, 0)
        world.pass_ms(32_000)
        world.settle()
        assert fetch(world) == (-1, 0)


def test_without_its_topic_nobody_coordinates() -> None:
    with serving(**QUICK) as world:
        world.topic("t")
        assert fetch(world) == (-1, ErrorCode.NOT_COORDINATOR)
        find(world)
        commit(world, 5)
        world.delete(OFFSETS_TOPIC)
        assert fetch(world) == (-1, ErrorCode.NOT_COORDINATOR)


def test_a_disk_below_its_reserve_refuses_writes_and_answers_all_else() -> None:
    with serving(**QUICK) as world:
        world.topic("t")
        client, generation, member = stable(world)
        assert commit(world, 5, group="other") == 0
        room = world.disk.capacity_bytes
        world.disk.capacity_bytes = room - world.disk.free_bytes("/data") + 100
        world.pass_ms(2000)
        assert commit(world, 6, group="other") == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert fetch(world, group="other") == (5, 0)
        beat = heartbeat.Request(GROUP, generation, member)
        assert client.ask(beat).error_code == 0
        answer = world.client().ask(joining(group="new"))
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        world.pass_ms(20_000)
        assert client.ask(beat).error_code == 0, "no session expires that could not be written"
        world.disk.capacity_bytes = room
        world.pass_ms(2000)
        assert commit(world, 7, group="other") == 0
        assert client.ask(beat).error_code == 0


@pytest.mark.parametrize("retention_ms", [2**63 - 1, -(2**63), 0])
def test_no_retention_time_costs_other_groups_their_coordinator(retention_ms: int) -> None:
    with serving(**QUICK | {"offsets_topic_num_partitions": 1}) as world:
        world.topic("t")
        find(world)
        assert commit(world, 5) == 0
        part = offset_commit.OffsetCommitRequestPartition(0, 9, -1, "")
        topic = offset_commit.OffsetCommitRequestTopic("t", partitions=[part])
        request = offset_commit.Request("evil", retention_time_ms=retention_ms, topics=[topic])
        assert world.client().ask(request, 2).topics[0].partitions[0].error_code == 0
        assert fetch(world) == (5, 0)
        assert fetch(world, group="evil") == (9, 0)


def test_a_damaged_log_costs_its_own_groups_and_nobody_else() -> None:
    with serving(**QUICK | {"offsets_topic_num_partitions": 2}) as world:
        world.topic("t")
        find(world)
        bad, good = (next(g for g in "abcdef" if partition_of(g, 2) == n) for n in range(2))
        world.configure(OFFSETS_TOPIC, "internal.segment.bytes", 300)
        for offset in range(9):
            assert commit(world, offset, group=bad) == 0
        assert commit(world, 7, group=good) == 0
        sealed = world.partition(OFFSETS_TOPIC).log.segments[1].log_path
        world.stop()
        world.disk.flip_bit(sealed, 16)  # The magic of its first batch: a start reads none of it.
        world.start()
        world.pass_ms(1000)
        assert not world.broker.failed.done()
        assert fetch(world, group=good) == (7, 0)
        assert fetch(world, group=bad) == (-1, ErrorCode.NOT_COORDINATOR)
        assert world.broker.partitions.damages == 1


def test_under_min_isr_commits_are_refused_at_once_and_reads_go_on() -> None:
    settings = {"offsets_topic_num_partitions": 1, "min_insync_replicas": 2}
    with replicating(**settings) as cluster:
        cluster.topic("t", factor=1)
        assert factor_of_first_use(cluster) == 3
        leader = cluster.leader(topic=OFFSETS_TOPIC)
        cluster.pass_ms(1000)
        assert commit_at(cluster, leader, 5) == 0
        for follower in cluster.followers(topic=OFFSETS_TOPIC):
            follower.kill()
            cluster.notice_death(follower)
        begun = cluster.clock.monotonic()
        assert commit_at(cluster, leader, 6) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        asked = offset_fetch.OffsetFetchRequestGroup("g", topics=None)
        request = offset_fetch.Request(groups=[asked])
        found = cluster.ask(leader, request, offset_fetch.Response).groups[0]
        assert (found.error_code, found.topics[0].partitions[0].committed_offset) == (0, 5)
        beat = heartbeat.Request("g", 1, "nobody")
        code = cluster.ask(leader, beat, heartbeat.Response).error_code
        assert code == ErrorCode.UNKNOWN_MEMBER_ID
        assert cluster.clock.monotonic() - begun < 100


def commit_at(cluster: Cluster, node: Node, offset: int) -> int:
    part = offset_commit.OffsetCommitRequestPartition(0, offset, -1, "")
    topic_id = cluster.log.image.topics_by_name["t"].id
    topic = offset_commit.OffsetCommitRequestTopic(topic_id=topic_id, partitions=[part])
    request = offset_commit.Request("g", topics=[topic])
    answer = cluster.ask(node, request, offset_commit.Response)
    code: int = answer.topics[0].partitions[0].error_code
    return code


def test_offsets_of_a_topic_deleted_while_the_log_takes_nothing_are_gone_once_it_does() -> None:
    with serving(**QUICK) as world:
        world.topic("t")
        find(world)
        assert commit(world, 5) == 0
        index = world.broker.groups.partition_of(GROUP)
        directory = world.broker.directories.of(world.partition(OFFSETS_TOPIC, index).log)
        world.broker.directories.check_space = lambda: None  # type: ignore[method-assign]
        directory.is_full = True
        world.delete("t")
        world.pass_ms(2000)
        assert fetch(world) == (5, 0), "that is not written yet"
        directory.is_full = False
        world.pass_ms(600)
        assert fetch(world) == (-1, 0)


def test_a_log_that_cannot_be_read_for_a_moment_is_loaded_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load, failures = MachinePartition.load, [OSError(errno.EMFILE, "told so")]

    async def fail_once(machine: MachinePartition[Any, Any]) -> None:
        if failures:
            raise failures.pop()
        await load(machine)

    with serving(**QUICK | {"offsets_topic_num_partitions": 1}) as world:
        world.topic("t")
        find(world)
        assert commit(world, 5) == 0
        monkeypatch.setattr(MachinePartition, "load", fail_once)
        world.restart()
        world.pass_ms(1000)
        assert not failures
        assert fetch(world) == (5, 0)
