import asyncio

import pytest

from ottla.broker.controller.metadata_log import MetadataLog
from ottla.metadata.image.batches import (
    batches_in,
    data_batches,
    encoded,
    read_controls,
)
from ottla.model.errors import Damaged
from ottla.model.types import ZERO_UUID
from ottla.protocol.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    VotersRecord,
)
from ottla.quorum.election_state import ElectionState, from_json
from ottla.quorum.log_view import NeedsSnapshot, OffsetAndEpoch, compare
from ottla.quorum.voters import Address, Voter, Voters
from ottla.records.batch import Batch
from ottla.storage.checkpoint import encode_epochs, replace_file
from tests.unit.broker.driving import LOG, ONE, SEGMENT, Node, formatted, run
from tests.unit.broker.metadata_logs import TOPICS, copy_pieces, loaded, snapshot_of, write

STATIC = Voters.of([Voter(ONE, ZERO_UUID, {"CONTROLLER": Address("h", 9093)})])


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


def test_the_epoch_is_above_that_of_the_log_even_without_the_vote_file() -> None:
    node = formatted()
    for _ in range(2):
        led(node)
        node.disk.remove(f"{LOG}/quorum-state")
    assert loaded(node)[0].last_epoch == 2
    led(node)
    assert loaded(node)[0].election_state.state.epoch == 3


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


def test_another_topics_directory_is_no_metadata_log() -> None:
    node = formatted()
    MetadataLog(node.env, node.settings)
    path = f"{LOG}/partition.metadata"
    file = node.disk.open(path)
    file.truncate(0)
    file.append([b"version: 0\ntopic_id: aZSxcrjtRrO_dWhnyP37Bw"])
    with pytest.raises(Damaged, match="not a metadata log"):
        MetadataLog(node.env, node.settings)


def test_a_torn_tail_is_cut_and_what_is_before_it_stays() -> None:
    node = formatted()
    led(node)
    size = node.disk.size(SEGMENT)
    end = loaded(node)[0].end_offset
    node.disk.open(SEGMENT).append([node.disk.read(SEGMENT)[: size // 2]])
    log, _ = loaded(node)
    assert node.disk.size(SEGMENT) == size
    assert log.end_offset == end


def test_a_log_that_cannot_be_closed_for_lack_of_room_is_not_open() -> None:
    node = formatted()
    log, _ = loaded(node)
    write(node, log, 1, *TOPICS)
    node.disk.capacity_bytes = node.disk.used_bytes
    with pytest.raises(OSError, match="no space"):
        log.close()
    assert not log.is_open


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
