"""Checkpoints that a worker writes: one at a time, shared by all that ask meanwhile."""

import asyncio
import errno
from random import Random
from typing import Any

import pytest

from ottla.broker.partitions.checkpoint_writer import CheckpointWriter
from ottla.env.workers import InlineWorkers
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import TopicPartition
from ottla.simulation.world.disk import SimulatedDisk
from ottla.storage.checkpoint import decode_offsets
from ottla.storage.checkpoints import HIGH_WATERMARKS, RECOVERY_POINTS
from ottla.storage.directory import LogDirectory
from ottla.storage.identity import MetaProperties

NAME = TopicPartition("t", 0)


class Counting(InlineWorkers):
    """Holds the work back until it is let go on."""

    def __init__(self) -> None:
        self.count = 0
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def run(self, work: Any, *arguments: object) -> Any:  # noqa: ANN401
        self.count += 1
        await self.go_on.wait()
        return work(*arguments)


class World:
    def __init__(self) -> None:
        self.disk = SimulatedDisk(Random(1))
        self.disk.make_directory("/data")
        self.directory = LogDirectory.open(self.disk, "/data")
        self.directory.format(MetaProperties("cluster", 1, bytes(16)))
        self.workers = Counting()
        self.mark = 1
        self.tasks: list[asyncio.Task[None]] = []
        self.writer = CheckpointWriter(
            self.workers,
            lambda work: self.tasks.append(asyncio.get_running_loop().create_task(work)),
            lambda _: {NAME: self.mark},
            lambda directory, error: directory.failed(error),
        )

    def offset(self, name: str = RECOVERY_POINTS) -> int | None:
        return decode_offsets(name, self.disk.read(f"/data/{name}")).get(NAME)

    def set(self, offset: int) -> None:
        self.directory.checkpoints.recovery_points[NAME] = offset


def test_those_who_ask_during_a_write_share_the_next_one() -> None:
    async def scenario() -> None:
        world = World()
        world.workers.go_on.clear()
        world.set(1)
        first = asyncio.ensure_future(world.writer.write(world.directory))
        await asyncio.sleep(0.01)
        world.set(2)
        others = [asyncio.ensure_future(world.writer.write(world.directory)) for _ in range(9)]
        await asyncio.sleep(0.01)
        assert not first.done()
        world.workers.go_on.set()
        await asyncio.gather(first, *others)
        assert world.workers.count == 2
        assert world.offset() == 2

    asyncio.run(scenario())


def test_a_waiter_that_is_cancelled_takes_no_other_along() -> None:
    async def scenario() -> None:
        world = World()
        world.workers.go_on.clear()
        gone = asyncio.ensure_future(world.writer.write(world.directory))
        stays = asyncio.ensure_future(world.writer.write(world.directory))
        await asyncio.sleep(0.01)
        gone.cancel()
        world.workers.go_on.set()
        await stays
        assert gone.cancelled()

    asyncio.run(scenario())


def test_high_watermarks_alone_are_written_unless_a_whole_checkpoint_is_asked_for() -> None:
    async def scenario() -> None:
        world = World()
        world.writer.note_high_watermarks(world.directory)
        await asyncio.gather(*world.tasks)
        assert world.offset(HIGH_WATERMARKS) == 1
        assert not world.disk.exists(f"/data/{RECOVERY_POINTS}")
        world.writer.note_high_watermarks(world.directory)  # As before: nothing to write.
        await asyncio.gather(*world.tasks)
        assert world.workers.count == 1
        world.mark = 5
        world.set(3)
        world.writer.note_high_watermarks(world.directory)
        await world.writer.write(world.directory)
        assert world.workers.count == 2
        assert (world.offset(HIGH_WATERMARKS), world.offset()) == (5, 3)

    asyncio.run(scenario())


def test_a_failure_is_told_to_all_that_wait_and_the_next_one_tries_again() -> None:
    async def scenario() -> None:
        world = World()
        world.disk.fail("append", errno.ENOSPC, path_contains=RECOVERY_POINTS)
        for _ in range(2):
            with pytest.raises(Refusal) as refused:
                await world.writer.write(world.directory)
            assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
            world.disk.fail("sync", errno.EIO, path_contains=RECOVERY_POINTS)
        assert world.directory.failure is not None
        with pytest.raises(Refusal):
            await world.writer.write(world.directory)
        assert world.workers.count == 2, "nothing is written to a directory that failed"

    asyncio.run(scenario())


def test_a_write_that_began_is_waited_for_though_its_task_is_cancelled() -> None:
    async def scenario() -> None:
        world = World()
        world.set(4)
        world.workers.go_on.clear()
        world.writer.soon(world.directory)
        await asyncio.sleep(0.01)
        for task in world.tasks:
            task.cancel()
        await asyncio.gather(*world.tasks, return_exceptions=True)
        world.workers.go_on.set()
        await world.writer.wait_idle()
        assert world.offset() == 4

    asyncio.run(scenario())


def test_a_file_that_could_not_be_replaced_promises_what_it_did() -> None:
    async def scenario() -> None:
        world = World()
        world.set(5)
        await world.writer.write(world.directory)
        world.set(2)
        world.disk.fail("append", errno.ENOSPC, path_contains=RECOVERY_POINTS)
        with pytest.raises(Refusal):
            await world.writer.write(world.directory)
        assert world.offset() == 5
        assert world.directory.checkpoints.may_promise(NAME, 2)
        await world.writer.write(world.directory)
        assert not world.directory.checkpoints.may_promise(NAME, 2)

    asyncio.run(scenario())
