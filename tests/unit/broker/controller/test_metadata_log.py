import asyncio
from dataclasses import replace
from typing import Any

import pytest

from ottla.broker.controller.metadata_log import FormatRefused, MetadataLog
from ottla.env.workers import InlineWorkers
from ottla.metadata.image.batches import (
    batches_in,
    control_batch,
    data_batches,
    encoded,
    read_controls,
)
from ottla.metadata.image.image import ClusterImage
from ottla.metadata.image.snapshot_file import SnapshotId
from ottla.model.errors import Damaged
from ottla.model.types import ZERO_UUID
from ottla.protocol.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    QuorumControl,
    VotersRecord,
)
from ottla.protocol.metadata_records import TopicRecord
from ottla.quorum.election_state import ElectionState, from_json
from ottla.quorum.log_view import NeedsSnapshot, OffsetAndEpoch, compare
from ottla.quorum.voters import Address, Voter, Voters
from ottla.records.batch import Batch
from ottla.storage.checkpoint import encode_epochs, replace_file
from ottla.storage.sync_work import DirectoryToSync
from tests.unit.broker.driving import LOG, ONE, SEGMENT, Node, run

STATIC = Voters.of([Voter(ONE, ZERO_UUID, {"CONTROLLER": Address("h", 9093)})])
TOPICS = [TopicRecord(f"t{n}", bytes([n]) * 16) for n in range(3)]


def loaded(node: Node) -> tuple[MetadataLog, list[object]]:
    log = MetadataLog(node.env, node.settings)
    records: list[object] = [record for _, record in log.load_snapshot()]
    log.open()
    newest = log.newest_snapshot
    records += [r for _, r in log.records(newest.offset if newest else 0, log.end_offset)]
    return log, records


def formatted(**settings: object) -> Node:
    node = Node(**settings)
    node.format()
    return node


def write(node: Node, log: MetadataLog, epoch: int, *topics: TopicRecord) -> None:
    for topic in topics:
        values = [encoded([topic], 30)]
        (data,) = data_batches(values, log.end_offset, epoch, node.clock.wall())
        log.append(Batch(data), node.clock.wall())
        run(log.sync())


def write_controls(node: Node, log: MetadataLog, epoch: int, *controls: QuorumControl) -> None:
    now = node.clock.wall()
    log.append(Batch(control_batch(controls, log.end_offset, epoch, now)), now)
    run(log.sync())


def led(node: Node) -> None:
    """A whole driver leads once."""

    async def work() -> None:
        driver = await node.started()
        driver.close()

    run(work())


def first_controls(node: Node) -> list[object]:
    _, batch = next(iter(batches_in(node.disk.read(SEGMENT), SEGMENT)))
    return list(read_controls(batch, SEGMENT, 0))


def test_the_first_epoch_of_dynamic_voters_writes_them_into_the_log() -> None:
    node = formatted()
    assert not loaded(node)[0].history.are_voters_in_log
    led(node)
    controls = first_controls(node)
    assert [type(c) for c in controls] == [LeaderChangeMessage, KRaftVersionRecord, VotersRecord]
    assert from_json(node.disk.read(f"{LOG}/quorum-state")) == ElectionState(1, ONE)
    assert loaded(node)[0].history.are_voters_in_log


def test_static_voters_are_not_written() -> None:
    node = Node(static_voters=STATIC)
    node.format(standalone_at=None, is_dynamic=False)
    led(node)
    assert [type(c) for c in first_controls(node)] == [LeaderChangeMessage]
    assert b'"currentVoters":[{"voterId":1}]' in node.disk.read(f"{LOG}/quorum-state")


def test_records_of_the_log_follow_those_of_the_snapshot() -> None:
    node = formatted()
    log, records = loaded(node)
    assert records == []
    write(node, log, 1, *TOPICS)
    log.close()
    again, records = loaded(node)
    assert records == TOPICS
    assert [r for _, r in again.records(1, 2)] == TOPICS[1:2]


def test_the_epoch_is_above_that_of_the_log_even_without_the_vote_file() -> None:
    node = formatted()
    for _ in range(2):
        led(node)
        node.disk.remove(f"{LOG}/quorum-state")
    assert loaded(node)[0].last_epoch == 2
    led(node)
    assert loaded(node)[0].state.epoch == 3


def test_a_log_that_begins_after_the_last_snapshot_is_refused() -> None:
    node = formatted()
    led(node)
    node.disk.rename(SEGMENT, f"{LOG}/{7:020d}.log")
    for name in node.disk.list(LOG):
        if name.startswith(f"{0:020d}.") and not name.endswith("checkpoint"):
            node.disk.remove(f"{LOG}/{name}")
    with pytest.raises(Damaged):
        loaded(node)


def test_a_snapshot_ahead_of_the_log_is_where_the_log_goes_on() -> None:
    node = formatted()
    bootstrap = f"{LOG}/{0:020d}-{0:010d}.checkpoint"
    node.disk.rename(bootstrap, f"{LOG}/{40:020d}-{2:010d}.checkpoint")
    log, _ = loaded(node)
    assert log.end_offset == log.log_start_offset == 40
    assert log.last_epoch == 2
    assert log.oldest_snapshot == log.newest_snapshot == (40, 2)
    assert log.epoch_end(2) is None  # Only the snapshot knows of it.


def test_a_vote_file_that_makes_no_sense_is_damage() -> None:
    node = formatted()
    MetadataLog(node.env, node.settings)
    node.disk.open(f"{LOG}/quorum-state", create=True).append([b"{"])
    with pytest.raises(Damaged, match="quorum-state"):
        MetadataLog(node.env, node.settings)


def test_another_topics_directory_is_no_metadata_log() -> None:
    node = formatted()
    MetadataLog(node.env, node.settings)
    path = f"{LOG}/partition.metadata"
    file = node.disk.open(path)
    file.truncate(0)
    file.append([b"version: 0\ntopic_id: aZSxcrjtRrO_dWhnyP37Bw"])
    with pytest.raises(Damaged, match="not a metadata log"):
        MetadataLog(node.env, node.settings)


def test_a_kraft_version_above_ours_is_refused_by_name() -> None:
    node = formatted()
    log, _ = loaded(node)
    with pytest.raises(FormatRefused, match=r"kraft.version 2"):
        write_controls(node, log, 1, KRaftVersionRecord(kraft_version=2))
    log.close()
    with pytest.raises(FormatRefused, match=r"kraft.version 2"):
        loaded(node)


def test_a_torn_tail_is_cut_and_what_is_before_it_stays() -> None:
    node = formatted()
    led(node)
    size = node.disk.size(SEGMENT)
    end = loaded(node)[0].end_offset
    node.disk.open(SEGMENT).append([node.disk.read(SEGMENT)[: size // 2]])
    log, _ = loaded(node)
    assert node.disk.size(SEGMENT) == size
    assert log.end_offset == end


def test_it_says_where_each_epoch_ends() -> None:
    node = formatted()
    log, _ = loaded(node)
    write(node, log, 1, *TOPICS[:2])
    write(node, log, 4, TOPICS[2])
    assert log.epoch_end(0) is None
    assert log.epoch_end(1) == log.epoch_end(3) == OffsetAndEpoch(2, 1)
    assert log.epoch_end(4) == log.epoch_end(9) == OffsetAndEpoch(3, 4)


def test_a_crash_between_the_epochs_and_the_segments_of_a_cleaning_forgets_no_epoch() -> None:
    """It led then, and had its followers cut what was committed."""
    node = formatted()
    log, _ = loaded(node)
    write(node, log, 1, *TOPICS)
    log.abandon()
    node.disk.kill()
    replace_file(node.disk, f"{LOG}/leader-epoch-checkpoint", encode_epochs([(1, 3)]))
    log, _ = loaded(node)
    assert log.epoch_end(1) == OffsetAndEpoch(3, 1)


def test_a_log_that_was_cleaned_begins_at_its_snapshot_after_a_restart_too() -> None:
    """The epochs of what lies before are forgotten: nobody may be told where they ended."""
    node = formatted(snapshot_after_bytes=1, retention_bytes=1)

    async def lead() -> tuple[int, OffsetAndEpoch]:
        driver = await node.started()
        await driver.commits.snapshot_if_due()
        newest = driver.log.newest_snapshot
        assert newest is not None
        start = driver.log.log_start_offset
        driver.log.abandon()
        return start, newest

    run(lead())
    start, newest = run(lead())
    assert start == newest.offset > 0
    log, _ = loaded(node)
    assert log.log_start_offset == start
    assert [snapshot.end_offset for snapshot in log.snapshots.ids] == [start]
    follower = OffsetAndEpoch(start - 1, newest.epoch - 1)
    assert compare(log, follower) == NeedsSnapshot(newest)


def test_what_a_killed_node_left_in_the_page_cache_is_synced_before_it_counts() -> None:
    node = formatted()
    log, _ = loaded(node)
    now = node.clock.wall()
    (data,) = data_batches([encoded([TOPICS[0]], 30)], log.end_offset, 1, now)
    log.append(Batch(data), now)
    log.abandon()
    node.disk.kill()
    log, _ = loaded(node)
    assert log.end_offset == 1
    log.abandon()
    node.disk.cut_power()
    log, _ = loaded(node)
    assert log.end_offset == 1


def test_a_truncation_takes_voters_and_epochs_back() -> None:
    node = formatted()
    log, _ = loaded(node)
    before = log.history.voters
    write(node, log, 1, TOPICS[0])
    write_controls(node, log, 2, STATIC.to_record())
    assert log.history.voters == STATIC
    log.truncate_to(1)
    assert (log.history.voters, log.last_epoch, log.end_offset) == (before, 1, 1)
    log.close()
    assert loaded(node)[1] == TOPICS[:1]


def test_batches_of_the_leader_have_to_follow_our_own() -> None:
    one, other = formatted(), formatted()
    source, _ = loaded(one)
    write(one, source, 3, *TOPICS)
    target, _ = loaded(other)
    for batch in target.fetched(source.read(0, 1 << 20)):
        target.append(batch, other.clock.wall())
    assert target.end_offset == 3
    assert target.read(1, 1) == source.read(1, 1)  # At least one, whatever the limit.
    with pytest.raises(Damaged, match="cannot follow"):
        next(iter(target.fetched(source.read(1, 1))))
    with pytest.raises(Damaged, match="checksum"):
        next(iter(target.fetched(source.read(0, 1)[:-1] + b"x")))


def snapshot_of(node: Node) -> OffsetAndEpoch:
    async def snapshot() -> OffsetAndEpoch:
        driver = await node.started()
        await driver.commits.snapshot_if_due()
        found = driver.log.newest_snapshot
        assert found is not None
        driver.close()
        return found

    return run(snapshot())


def copy_pieces(source: MetadataLog, target: MetadataLog, place: OffsetAndEpoch) -> None:
    position, size = 0, 1
    while position < size:
        piece = source.read_snapshot(place, position, 100)
        assert piece is not None
        target.snapshots.write_piece(SnapshotId(*place), position, piece[0])
        position, size = position + len(piece[0]), piece[1]


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
        quick = target._env.workers

        class SlowToWrite(InlineWorkers):
            async def run(self, work: Any, *arguments: object) -> Any:  # noqa: ANN401
                if work == target.snapshots.write:
                    await gate.wait()
                return await quick.run(work, *arguments)

        target._env = replace(target._env, workers=SlowToWrite())
        target._log.epochs.assign(place.epoch, 0)
        writing = asyncio.create_task(target.write_snapshot(image))
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
    target._log.roll(other.clock.wall())
    write(other, target, 9, *TOPICS)
    target._settings = replace(target._settings, retention_bytes=1)
    copy_pieces(source, target, place)
    image = ClusterImage("cluster")
    image.offset = target.end_offset - 1

    async def both() -> None:
        gate = asyncio.Event()
        quick = target._env.workers

        class SlowToSync(InlineWorkers):
            async def run(self, work: Any, *arguments: object) -> Any:  # noqa: ANN401
                if isinstance(getattr(work, "__self__", None), DirectoryToSync):
                    await gate.wait()
                return await quick.run(work, *arguments)

        target._env = replace(target._env, workers=SlowToSync())
        writing = asyncio.create_task(target.write_snapshot(image))
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


def test_a_fetched_snapshot_replaces_the_log() -> None:
    one, other = formatted(snapshot_after_bytes=1), formatted()
    place = snapshot_of(one)
    source, _ = loaded(one)
    target, _ = loaded(other)
    write(other, target, 1, *TOPICS)
    copy_pieces(source, target, place)
    asyncio.run(target.install_snapshot(place))
    assert (target.log_start_offset, target.end_offset) == (place.offset, place.offset)
    assert target.snapshots.ids == [place]
    assert source.read_snapshot(OffsetAndEpoch(1, 1), 0, 1) is None
    target.close()
    again, records = loaded(other)
    assert again.end_offset == place.offset
    assert records
