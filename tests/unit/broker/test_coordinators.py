"""Coordinators of a broker: made with their topic, loaded, reloaded, never guessing."""

import pytest

from ottla.groups.placement import OFFSETS_TOPIC
from ottla.model.errors import ErrorCode
from ottla.protocol.messages import find_coordinator, heartbeat
from tests.unit.broker.grouping import QUICK, commit, fetch, find, stable
from tests.unit.broker.replicating import Cluster, replicating
from tests.unit.broker.serving import serving
from tests.unit.groups.driving import GROUP


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
    told = [line for line in caplog.messages if "groups wait" in line]
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
        assert commit(world, 6) == ErrorCode.NOT_COORDINATOR
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
