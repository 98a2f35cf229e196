import errno

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import ProducerId
from tests.unit.broker.serving import World, serving

Taken = ProducerId | Refusal


def take(world: World, count: int) -> list[Taken]:
    taken: list[Taken] = []
    for _ in range(count):
        world.broker.producer_ids.take(taken.append)
    world.until(lambda: len(taken) == count)
    return taken


def test_ids_are_given_in_order_across_blocks() -> None:
    with serving() as world:
        assert take(world, 1) == [0]
        assert take(world, 2_100) == list(range(1, 2_101))
        assert world.broker.image.producer_ids.next_id == 3_000


def test_what_was_left_of_a_block_is_never_given_after_a_restart() -> None:
    with serving() as world:
        take(world, 3)
        world.restart()
        assert take(world, 1) == [1_000]


def test_while_the_disk_is_full_producers_are_told_to_ask_again() -> None:
    with serving() as world:
        world.disk.fail("append", errno.ENOSPC, path_contains="__cluster_metadata")
        refusals = take(world, 2)
        assert all(isinstance(taken, Refusal) for taken in refusals)
        assert {taken.code for taken in refusals if isinstance(taken, Refusal)} == {
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        }
        assert take(world, 1) == [0]
