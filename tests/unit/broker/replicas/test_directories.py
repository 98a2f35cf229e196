import errno
from copy import copy

import pytest

from ottla.metadata.decisions.brokers import expire
from ottla.metadata.image.cluster import LOST_DIRECTORY, UNASSIGNED_DIRECTORY
from ottla.metadata.image.delta import ImageDelta
from ottla.metadata.image.features import METADATA_VERSION
from ottla.model.errors import Damaged
from ottla.model.types import NodeId
from ottla.storage.deletion import remove_paths
from tests.unit.broker.replicating import Cluster, Node, replicating
from tests.unit.broker.serving import World, serving

ONE = NodeId(1)
TWO_DISKS = ("/a", "/b")
OLD_VERSION = 10  # 3.5: before directories were known.


def disks_in_metadata(world: World, topic: str = "t") -> list[bytes]:
    partitions = world.broker.image.topics_by_name[topic].partitions
    return [partitions[index].directory_of(ONE) for index in sorted(partitions)]


def disks_in_use(world: World, topic: str = "t") -> list[bytes | None]:
    count = len(world.broker.image.topics_by_name[topic].partitions)
    found = []
    for index in range(count):
        meta = world.broker.directories.of(world.partition(topic, index).log).meta
        found.append(meta.directory_id if meta else None)
    return found


def test_the_controller_learns_on_which_disk_each_replica_lies() -> None:
    with serving(TWO_DISKS) as world:
        world.topic("t", 4)
        world.settle()
        assert disks_in_metadata(world) == disks_in_use(world)
        assert len(set(disks_in_use(world))) == 2


def test_it_still_knows_after_a_restart() -> None:
    with serving(TWO_DISKS) as world:
        world.topic("t", 4)
        world.settle()
        before = disks_in_metadata(world)
        world.restart()
        world.settle()
        assert disks_in_metadata(world) == disks_in_use(world) == before


def test_with_one_disk_there_is_nothing_to_say() -> None:
    with serving() as world:
        world.topic("t", 2)
        end = world.broker.image.offset
        assert disks_in_metadata(world) == disks_in_use(world)
        assert UNASSIGNED_DIRECTORY not in disks_in_metadata(world)
        world.settle()
        assert world.broker.image.offset == end


def test_what_could_not_be_noted_is_told_again() -> None:
    with serving(TWO_DISKS) as world:

        def fill_disk(delta: ImageDelta) -> None:
            if delta.created:  # The next to be written is where the replicas are.
                world.disk.fail("append", errno.ENOSPC, path_contains="__cluster_metadata")

        world.broker.quorum.commits.subscribe(fill_disk)
        world.topic("t", 4)
        world.settle()
        assert UNASSIGNED_DIRECTORY in disks_in_metadata(world)
        world.pass_ms(1500)
        assert disks_in_metadata(world) == disks_in_use(world)


def test_a_replica_that_finds_room_only_later_is_told_of_then() -> None:
    with serving(TWO_DISKS) as world:
        for disk in TWO_DISKS:
            world.disk.fail("create", errno.ENOSPC, path_contains=f"{disk}/t-0/")
        world.topic("t", 1)
        world.settle()
        assert disks_in_metadata(world) == [UNASSIGNED_DIRECTORY]
        world.pass_ms(2500)
        assert disks_in_metadata(world) == disks_in_use(world)


def disk_of(node: Node, index: int) -> str:
    return node.broker.directories.of(node.partition(index).log).path


def lose_disk(node: Node, path: str) -> None:
    (directory,) = [d for d in node.broker.directories.all() if d.path == path]
    log = next(iter(directory.logs.values()))

    async def fail() -> None:
        node.broker.directories.write_failed(log, OSError(errno.EIO, "told so", path))

    node.cluster.run(fail())


def is_whole(cluster: Cluster, partitions: int) -> bool:
    return all(len(cluster.state(index).isr) == 3 for index in range(partitions))


def test_followers_say_where_their_replicas_lie_too() -> None:
    with replicating(log_dirs="/a,/b", metadata_log_dir="/m") as cluster:
        cluster.topic(partitions=4)
        cluster.pass_ms(200)
        for node in cluster.nodes.values():
            for index in range(4):
                meta = node.broker.directories.of(node.partition(index).log).meta
                assert meta is not None
                assert cluster.state(index).directory_of(NodeId(node.number)) == meta.directory_id


def test_replicas_of_a_failed_disk_are_fetched_anew_into_another() -> None:
    with replicating(
        log_dirs="/a,/b", metadata_log_dir="/m", features={"eligible.leader.replicas.version": 1}
    ) as cluster:
        cluster.topic(partitions=4, min_insync_replicas="2")
        for index in range(4):
            cluster.produce(cluster.leader(index), b"1", b"2", b"3", index=index)
        cluster.pass_ms(200)
        node = cluster.nodes[2]
        before = {index: disk_of(node, index) for index in range(4)}
        assert set(before.values()) == {"/a", "/b"}
        lose_disk(node, "/b")
        cluster.until(lambda: is_whole(cluster, 4))
        for index in range(4):
            assert disk_of(node, index) == "/a"
            assert node.values(index) == [b"1", b"2", b"3"]
            assert cluster.log.image.brokers[NodeId(2)].has_disk_of(cluster.state(index))


def test_a_replica_that_was_begun_anew_is_in_sync_only_with_all_of_it() -> None:
    """Its leader remembers what it had; the others must not be led by an empty log."""
    with replicating(log_dirs="/a,/b", metadata_log_dir="/m") as cluster:
        cluster.topic(partitions=2)
        cluster.produce(cluster.leader(), b"1", b"2")
        cluster.pass_ms(200)
        node = cluster.followers()[0]

        def look(_: ImageDelta) -> None:
            if node.number in cluster.state().isr and node.broker.partitions.all():
                seen.append(node.partition().log.end_offset)

        seen: list[int] = []
        # What the leader remembers is all that it has: nothing of the new log reaches it for now.
        cluster.network.clog(node.host, 2_000_000_000)
        lose_disk(node, disk_of(node, 0))
        cluster.until(lambda: node.number not in cluster.state().isr)
        for reader in cluster.log.readers:
            reader.subscribe(look)
        cluster.until(lambda: node.number in cluster.state().isr)
        cluster.pass_ms(50)
        assert set(seen) == {2}


def test_the_only_one_who_has_it_does_not_begin_anew() -> None:
    with replicating(log_dirs="/a,/b", metadata_log_dir="/m") as cluster:
        cluster.topic(partitions=2, factor=1)
        node = cluster.leader()
        cluster.produce(node, b"1")
        cluster.pass_ms(100)
        path = next(d.path for d in node.broker.directories.all() if any(n[1] == 0 for n in d.logs))
        lose_disk(node, path)
        cluster.pass_ms(2000)
        assert cluster.state().leader == -1
        assert all((("t", 0) not in d.logs) for d in node.broker.directories.online())


def test_a_disk_that_is_back_does_not_bring_the_old_replicas_back() -> None:
    with replicating(log_dirs="/a,/b", metadata_log_dir="/m") as cluster:
        cluster.topic(partitions=2)
        for index in range(2):
            cluster.produce(cluster.leader(index), b"1", index=index)
        cluster.pass_ms(200)
        node = cluster.nodes[2]
        lose_disk(node, "/b")
        cluster.until(lambda: is_whole(cluster, 2))
        for index in range(2):
            cluster.produce(cluster.leader(index), b"2", index=index)
        node.kill()
        cluster.notice_death(node)
        node.start()
        cluster.until(lambda: is_whole(cluster, 2))
        for index in range(2):
            assert disk_of(node, index) == "/a"
            assert node.values(index) == [b"1", b"2"]
        assert [name for name in node.disk.list("/b") if name.endswith("-stray")]


def test_a_cluster_whose_log_knows_no_directories_is_told_nothing() -> None:
    with replicating(
        log_dirs="/a,/b", metadata_log_dir="/m", features={METADATA_VERSION: OLD_VERSION}
    ) as cluster:
        cluster.topic(partitions=2)
        asked: list[object] = []
        for node in cluster.nodes.values():
            node.broker.quorum.requests.submit = asked.append  # type: ignore[method-assign]
            node.broker.replica_directories.tell_all()
        cluster.pass_ms(10)
        assert asked == []


ELR = {"eligible.leader.replicas.version": 1}
FIRST_SEGMENT = f"/data/t-0/{0:020d}.log"


def committed(cluster: Cluster, isr_min: int) -> None:
    cluster.topic(min_insync_replicas=str(isr_min))
    for value in (b"1", b"2"):
        assert cluster.produce(cluster.leader(), value).error_code == 0
    cluster.pass_ms(6000)  # Until high watermarks are written.


@pytest.mark.parametrize("what", ["directory", "segment", "bit"])
@pytest.mark.parametrize("isr_min", [1, 2])
def test_a_damaged_replica_does_not_lead_though_it_comes_back_first(
    what: str, isr_min: int
) -> None:
    with replicating(features=ELR) as cluster:
        committed(cluster, isr_min)
        damaged = cluster.followers()[0]
        for node in cluster.nodes.values():
            node.kill()
        if what == "directory":
            remove_paths(damaged.disk, ["/data/t-0"])
        elif what == "segment":
            damaged.disk.remove(FIRST_SEGMENT)
        else:
            damaged.disk.flip_bit(FIRST_SEGMENT, 65)  # Of the first of two batches.
        damaged.start()
        cluster.pass_ms(5000)
        state = cluster.state()
        assert state.leader != damaged.number
        assert state.directory_of(NodeId(damaged.number)) == LOST_DIRECTORY
        for node in cluster.nodes.values():
            if node is not damaged:
                node.start()
        cluster.until(lambda: is_whole(cluster, 1))
        cluster.pass_ms(1000)
        assert damaged.values() == cluster.leader().values() == [b"1", b"2"]


@pytest.mark.parametrize("isr_min", [1, 2])
def test_it_does_not_lead_if_all_were_found_dead_before(isr_min: int) -> None:
    """Nobody is in sync, all are eligible: whoever leads first may be the only one left."""
    with replicating(features=ELR) as cluster:
        committed(cluster, isr_min)
        for node in cluster.nodes.values():
            node.kill()
        brokers = cluster.log.image.brokers
        cluster.log.write(expire(cluster.log.controller._context, list(brokers)))
        assert (cluster.state().isr, cluster.state().elr) == ((), (1, 2, 3))
        damaged = cluster.nodes[2]
        remove_paths(damaged.disk, ["/data/t-0"])
        damaged.start()
        cluster.pass_ms(3000)
        assert cluster.state().leader == -1
        cluster.nodes[1].start()
        cluster.until(lambda: set(cluster.state().isr) == {1, 2})
        assert cluster.state().leader == 1
        assert damaged.values() == [b"1", b"2"]


def test_one_that_cannot_tell_what_it_lost_counts_for_nothing() -> None:
    with replicating(features={METADATA_VERSION: OLD_VERSION}) as cluster:
        committed(cluster, 1)
        node = cluster.followers()[0]
        told = node.broker.replica_directories
        assert cluster.run(told.give_up(node.broker.broker_epoch))
        told.damaged(cluster.log.image.topics_by_name["t"].id, 0)
        assert not cluster.run(told.give_up(node.broker.broker_epoch))
        node.kill()
        cluster.notice_death(node)
        cluster.nodes[node.number].start()
        cluster.until(lambda: is_whole(cluster, 1))


def test_a_partition_that_is_new_to_a_broker_is_made_when_it_starts() -> None:
    with replicating(features=ELR) as cluster:
        node = cluster.nodes[3]
        node.kill()
        cluster.topic()
        cluster.notice_death(node)
        cluster.until(lambda: cluster.state().leader in (1, 2))
        cluster.produce(cluster.leader(), b"1")
        node.start()
        cluster.until(lambda: is_whole(cluster, 1))
        assert node.values() == [b"1"]


def test_the_damaged_leader_leaves_to_an_eligible_replica_that_comes_back() -> None:
    with replicating(features=ELR) as cluster:
        committed(cluster, 2)
        leader, others = cluster.leader(), cluster.followers()
        for node in others:
            node.kill()
            cluster.notice_death(node)
        assert cluster.state().isr == (leader.number,)
        eligible = cluster.nodes[cluster.state().elr[0]]

        async def meet_damage() -> None:
            partition = leader.partition()
            leader.broker.partitions.damaged(partition, Damaged("t-0", 0, "told so"))

        cluster.run(meet_damage())
        cluster.pass_ms(3000)
        assert cluster.state().leader == leader.number  # Nobody could lead instead.
        eligible.start()
        cluster.until(lambda: set(cluster.state().isr) == {leader.number, eligible.number})
        assert cluster.leader() is eligible
        assert cluster.produce(eligible, b"3").error_code == 0
        cluster.pass_ms(1000)
        assert leader.values() == [b"1", b"2", b"3"]


def test_a_replica_whose_directory_is_not_used_any_more_does_not_begin_anew_while_eligible() -> (
    None
):
    with replicating(2, features=ELR, log_dirs="/a,/b", metadata_log_dir="/m") as cluster:
        cluster.topic(partitions=2, factor=2, min_insync_replicas="2")
        for index in range(2):
            cluster.produce(cluster.leader(index), b"1", index=index)
        cluster.pass_ms(1000)
        node, other = cluster.nodes[2], cluster.nodes[1]
        for each in (node, other):
            each.kill()
        cluster.log.write(expire(cluster.log.controller._context, [NodeId(1), NodeId(2)]))
        index = next(i for i in range(2) if node.disk.exists(f"/b/t-{i}"))
        node.settings = copy(node.settings)
        node.settings.log_dirs = ["/a"]
        node.start()
        cluster.pass_ms(2000)
        assert cluster.state(index).leader == -1
        assert not node.disk.exists(f"/a/t-{index}")
        other.start()
        cluster.until(lambda: set(cluster.state(index).isr) == {1, 2})
        assert cluster.state(index).leader == 1
        assert node.values(index) == [b"1"]
