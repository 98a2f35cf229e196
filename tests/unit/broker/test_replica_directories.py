import errno

from ottla.metadata.cluster import UNASSIGNED_DIRECTORY
from ottla.metadata.delta import ImageDelta
from ottla.model.types import NodeId
from tests.unit.broker.serving import World, serving

ONE = NodeId(1)
TWO_DISKS = ("/a", "/b")


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

        world.broker.quorum.subscribe(fill_disk)
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
