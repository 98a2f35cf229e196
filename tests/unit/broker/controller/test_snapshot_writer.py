"""Snapshots of the metadata log: when one is due, and one that is written during other work."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from ottla.broker.controller.snapshot_writer import SnapshotWriter
from ottla.env.workers import InlineWorkers
from ottla.metadata.image.image import ClusterImage
from ottla.metadata.image.snapshot_file import SnapshotId
from ottla.storage.sync_work import DirectoryToSync
from tests.unit.broker.driving import LOG, formatted
from tests.unit.broker.metadata_logs import TOPICS, copy_pieces, loaded, snapshot_of, write


def test_a_snapshot_is_due_after_so_many_bytes() -> None:
    node = formatted(snapshot_after_bytes=150)
    log, _ = loaded(node)
    writer = SnapshotWriter(node.env, log)
    sizes = []
    for topic in TOPICS:
        write(node, log, 1, topic)
        sizes.append((log.growth_bytes, writer.is_due))
    assert sizes == [(size, size >= 150) for size, _ in sizes]
    assert {is_due for _, is_due in sizes} == {False, True}
    image = ClusterImage("cluster")
    image.offset = 0
    asyncio.run(writer.write(image))
    assert not writer.is_due


def test_a_snapshot_is_due_after_so_long_if_the_log_has_grown() -> None:
    node = formatted(snapshot_after_ms=1000)
    log, _ = loaded(node)
    writer = SnapshotWriter(node.env, log)
    node.clock.now_ms = 1000
    assert not writer.is_due
    write(node, log, 1, TOPICS[0])
    assert writer.is_due
    node.clock.now_ms = 999
    assert not writer.is_due


@pytest.mark.parametrize("behind", [1, 0])
def test_a_snapshot_that_is_written_while_a_newer_one_is_installed_is_dropped(behind: int) -> None:
    """A slow worker: both nodes have the same log, and the writer's image may be older."""
    one, other = formatted(snapshot_after_bytes=1), formatted()
    place = snapshot_of(one)
    source, _ = loaded(one)
    target, _ = loaded(other)
    copy_pieces(source, target, place)
    image = ClusterImage("cluster")
    image.offset = place.offset - 1 - behind

    async def both() -> None:
        gate = asyncio.Event()
        quick = other.env.workers

        class SlowToWrite(InlineWorkers):
            async def run(self, work: Any, *arguments: object) -> Any:  # noqa: ANN401
                if work == target.snapshots.write:
                    await gate.wait()
                return await quick.run(work, *arguments)

        writer = SnapshotWriter(replace(other.env, workers=SlowToWrite()), target)
        target.storage.epochs.assign(place.epoch, 0)
        writing = asyncio.create_task(writer.write(image))
        await asyncio.sleep(0)
        await target.install_snapshot(place)
        gate.set()
        await writing

    asyncio.run(both())
    assert target.newest_snapshot == place
    assert target.snapshots.ids == [place]
    target.close()
    assert [name for name in other.disk.list(LOG) if name.endswith(".checkpoint")] == [
        SnapshotId(*place).file_name
    ]


def test_a_snapshot_that_is_installed_while_old_ones_are_removed_stays() -> None:
    """A slow worker syncs the directory of the log, before the old snapshots are removed."""
    one, other = formatted(snapshot_after_bytes=1), formatted(snapshot_after_bytes=1)
    for _ in range(4):
        place = snapshot_of(one)
    snapshot_of(other)
    source, _ = loaded(one)
    target, _ = loaded(other)
    target.storage.roll(other.clock.wall())
    write(other, target, 9, *TOPICS)
    target.settings = replace(target.settings, retention_bytes=1)
    copy_pieces(source, target, place)
    image = ClusterImage("cluster")
    image.offset = target.end_offset - 1

    async def both() -> None:
        gate = asyncio.Event()
        quick = other.env.workers

        class SlowToSync(InlineWorkers):
            async def run(self, work: Any, *arguments: object) -> Any:  # noqa: ANN401
                if isinstance(getattr(work, "__self__", None), DirectoryToSync):
                    await gate.wait()
                return await quick.run(work, *arguments)

        writer = SnapshotWriter(replace(other.env, workers=SlowToSync()), target)
        writing = asyncio.create_task(writer.write(image))
        await asyncio.sleep(0.01)
        assert not writing.done()
        await target.install_snapshot(place)
        gate.set()
        await writing

    asyncio.run(both())
    assert target.snapshots.ids == [place]
    assert (target.log_start_offset, target.end_offset) == (place.offset, place.offset)
    target.close()
    assert [name for name in other.disk.list(LOG) if name.endswith(".checkpoint")] == [
        SnapshotId(*place).file_name
    ]
