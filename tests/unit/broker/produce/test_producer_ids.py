"""Producer ids come by the block; nobody gets one that another has, nor waits for ever."""

from ottla.model.errors import ErrorCode, Refusal
from tests.unit.broker.serving import World, serving


def take(world: World, count: int) -> list[int | Refusal]:
    taken: list[int | Refusal] = []
    for _ in range(count):
        world.broker.producer_ids.take(taken.append)
    world.until(lambda: len(taken) == count)
    return taken


def test_ids_follow_each_other_through_the_blocks() -> None:
    with serving() as world:
        taken = take(world, 2500)
        assert taken == list(range(taken[0], taken[0] + 2500))


def test_those_who_wait_for_a_block_are_served_in_turn() -> None:
    with serving() as world:
        heard: list[tuple[str, object]] = []
        for name in "abc":
            world.broker.producer_ids.take(lambda taken, name=name: heard.append((name, taken)))
        world.settle()
        assert [name for name, _ in heard] == ["a", "b", "c"]
        first = heard[0][1]
        assert [taken for _, taken in heard] == [first, first + 1, first + 2]


def test_a_controller_that_refuses_is_not_asked_for_ever() -> None:
    with serving() as world:
        epoch, world.broker.lifecycle.broker_epoch = world.broker.lifecycle.broker_epoch, -5
        refused = take(world, 2)
        assert all(isinstance(one, Refusal) for one in refused)
        assert {one.code for one in refused} == {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
        world.broker.lifecycle.broker_epoch = epoch
        assert isinstance(take(world, 1)[0], int)


def test_a_block_is_not_used_again_after_a_restart() -> None:
    with serving() as world:
        before = take(world, 3)
        world.restart()
        after = take(world, 3)
        assert min(after) > max(before)
