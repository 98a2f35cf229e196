"""Damage that nobody has met yet is found; where others are in sync, the log is fetched anew."""

import pytest

from ottla.model.errors import Refusal
from tests.unit.broker.replicating import Cluster, Node, replicating
from tests.unit.broker.requests import fetch_request, only, write
from tests.unit.broker.serving import World, serving

SEGMENT_BYTES = 500
VALUES = [b"%03d" % number + b"." * 60 for number in range(30)]


def damage(node: "Node | World", path: str = "/data/t-0") -> str:
    """Flip a bit in the middle of the second segment; returns its path."""
    segment = sorted(name for name in node.disk.list(path) if name.endswith(".log"))[1]
    node.disk.flip_bit(f"{path}/{segment}", node.disk.size(f"{path}/{segment}") // 2)
    return f"{path}/{segment}"


def filled(cluster: Cluster, **configs: str) -> None:
    cluster.topic("t", internal_segment_bytes=str(SEGMENT_BYTES), **configs)
    for value in VALUES:
        assert cluster.produce(cluster.leader(), value).error_code == 0
    cluster.until(lambda: all(node.values() == VALUES for node in cluster.nodes.values()))


def is_well(cluster: Cluster) -> bool:
    if len(cluster.state().isr) < len(cluster.nodes):
        return False
    return all(
        len(node.broker.partitions) == 1 and node.values() == VALUES
        for node in cluster.nodes.values()
    )


@pytest.mark.parametrize("is_leader", [True, False])
def test_a_damaged_replica_is_fetched_anew(
    is_leader: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with replicating(3) as cluster:
        filled(cluster)
        node = cluster.leader() if is_leader else cluster.followers()[0]
        path = damage(node)
        old = node.partition()
        cluster.run(node.broker.scrubber.scrub())
        assert path in caplog.text
        assert node.broker.partitions.damages == 1
        cluster.until(lambda: is_well(cluster))
        assert node.partition() is not old
        assert (cluster.leader() is node) is False
        others = [n for n in cluster.nodes.values() if n is not node]
        for name in node.disk.list("/data/t-0"):
            if name.endswith(".log"):
                same = [n.disk.read(f"/data/t-0/{name}") for n in (node, *others)]
                assert same[0] == same[1] == same[2]
        cluster.run(node.broker.scrubber.scrub())
        assert node.broker.partitions.damages == 1
        assert cluster.produce(cluster.leader(), b"more").error_code == 0


def test_a_damaged_replica_waits_until_it_is_not_counted_on() -> None:
    """It is in sync: until the controller has taken note, what it has may be all there is."""
    with replicating(3) as cluster:
        filled(cluster)
        node = cluster.followers()[0]
        path = damage(node)
        node.quorum.is_cut_off = True
        cluster.run(node.broker.scrubber.scrub())
        cluster.pass_ms(500)
        assert node.disk.exists(path)
        assert len(node.broker.partitions) == 0


def test_two_in_sync_are_enough_for_the_third_to_begin_anew() -> None:
    """Below min.insync.replicas whoever leaves stays eligible: not one whose log is damaged."""
    with replicating(3, features={"eligible.leader.replicas.version": 1}) as cluster:
        filled(cluster, min_insync_replicas="2")
        gone, node = cluster.followers()
        gone.kill()
        cluster.notice_death(gone)
        damage(node)
        cluster.run(node.broker.scrubber.scrub())
        cluster.until(lambda: node.number not in cluster.state().isr)
        assert cluster.state().elr == ()
        cluster.until(lambda: node.number in cluster.state().isr)
        assert node.values() == VALUES


def test_the_only_copy_stays_in_service(caplog: pytest.LogCaptureFixture) -> None:
    with serving() as world:
        world.topic("t", internal_segment_bytes=SEGMENT_BYTES)
        for value in VALUES:
            write(world, value)
        path = damage(world)
        world.run(world.broker.scrubber.scrub())
        assert f"t-0 has no other copy: {path} is damaged at byte" in caplog.text
        assert world.broker.partitions.damages == 1
        assert write(world, b"more") == len(VALUES)
        assert only(world.client().ask(fetch_request(("t", 0, len(VALUES) - 1)), 12)).records


def test_what_is_whole_is_read_and_left_alone() -> None:
    with replicating(3) as cluster:
        filled(cluster)
        for node in cluster.nodes.values():
            before = node.partition()
            cluster.run(node.broker.scrubber.scrub())
            assert node.partition() is before
            assert node.broker.partitions.damages == 0


def test_it_looks_by_itself_some_time_after_the_start() -> None:
    with serving(log_initial_task_delay_ms=5000) as world:
        world.topic("t", internal_segment_bytes=SEGMENT_BYTES)
        for value in VALUES:
            write(world, value)
        damage(world)
        world.pass_ms(4000)
        assert world.broker.partitions.damages == 0
        world.pass_ms(3000)
        assert world.broker.partitions.damages == 1


def test_damage_that_a_recovery_finds_is_fetched_anew(caplog: pytest.LogCaptureFixture) -> None:
    with replicating(3) as cluster:
        filled(cluster)
        node = cluster.leader()
        node.kill()
        cluster.notice_death(node)
        node.disk.kill()
        path = damage(node)
        node.start()
        assert f"t-0 is offline: {path} is damaged at byte" in caplog.text
        assert node.broker.partitions.damages == 1
        cluster.until(lambda: is_well(cluster))
        assert cluster.leader() is not node


def test_damage_that_a_recovery_of_the_only_copy_finds_is_left_as_it_is() -> None:
    with serving() as world:
        world.topic("t", internal_segment_bytes=SEGMENT_BYTES)
        for value in VALUES:
            write(world, value)
        world.run(world.broker.abort())
        path = damage(world)
        content = world.disk.read(path)
        world.start()
        world.pass_ms(60_000)
        assert world.disk.read(path) == content
        assert world.broker.partitions.damages == 1
        with pytest.raises(Refusal, match="KAFKA_STORAGE_ERROR"):
            world.partition("t")
