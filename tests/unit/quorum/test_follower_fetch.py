"""What a follower does with the leader's answers."""

from typing import Any

import pytest

from ottla.model.types import NodeId
from ottla.protocol.messages import fetch, fetch_snapshot, update_raft_voter
from ottla.quorum.effects import (
    AppendFetched,
    Committed,
    InstallSnapshot,
    TruncateTo,
    WriteSnapshotPiece,
)
from ottla.quorum.log_view import OffsetAndEpoch
from ottla.quorum.messages import (
    Leadership,
    fetch_response,
    partition_of,
    snapshot_response,
)
from ottla.quorum.roles import Follower
from tests.simulation.quorum_node import Entry
from tests.unit.quorum.scene import Stage, address

LEAD = Leadership(5, NodeId(2))


def following(*epochs: int) -> Stage:
    stage = Stage(epochs=epochs)
    stage.led_by(2, 5)
    return stage


def answer(stage: Stage, **fields: Any) -> list[Any]:  # noqa: ANN401
    part = fetch.PartitionData(0, 0, fields.pop("high_watermark", -1))
    for name, value in fields.items():
        setattr(part, name, value)
    request = stage.requests(fetch.Request, to=2)[0]
    return stage.answer(request, fetch_response(LEAD, None, part))


def written(stage: Stage, epoch: int = 5) -> list[Any]:
    stage.log.entries.append(Entry(epoch, None))
    return stage.obey(stage.quorum.appended(stage.now))


def test_nothing_is_asked_for_before_what_came_is_on_disk() -> None:
    stage = following(1)
    asked = partition_of(stage.requests(fetch.Request)[0])
    assert (asked.fetch_offset, asked.last_fetched_epoch) == (1, 1)
    assert answer(stage, records=b"batch") == [AppendFetched(b"batch")]
    before = len(stage.sent)
    stage.wait(10)
    assert len(stage.sent) == before
    written(stage)
    assert partition_of(stage.requests(fetch.Request)[0]).fetch_offset == 2


def test_the_high_watermark_follows_the_leaders_as_far_as_our_log_goes() -> None:
    stage = following(1)
    answer(stage, records=b"batch", high_watermark=9)
    assert stage.quorum.high_watermark is None
    assert Committed(2) in written(stage)
    answer(stage, high_watermark=9)
    assert stage.quorum.high_watermark == 2


def test_a_watermark_means_nothing_while_the_logs_may_still_part() -> None:
    stage = following(1, 1, 3, 3)
    parting = fetch.EpochEndOffset(3, 3)
    effects = answer(stage, diverging_epoch=parting, high_watermark=3)
    assert TruncateTo(3) in effects
    assert stage.quorum.high_watermark is None
    asked = partition_of(stage.requests(fetch.Request)[0])
    assert (asked.fetch_offset, asked.last_fetched_epoch) == (3, 3)
    answer(stage, high_watermark=3)
    assert stage.quorum.high_watermark == 3


def test_what_is_committed_is_never_cut_away() -> None:
    stage = following(1, 1, 1)
    answer(stage, high_watermark=3)
    with pytest.raises(AssertionError, match="never cut"):
        answer(stage, diverging_epoch=fetch.EpochEndOffset(1, 2))


def test_what_cannot_be_written_is_asked_for_again() -> None:
    stage = following()
    answer(stage, records=b"batch")
    stage.obey(stage.quorum.not_written(stage.now))
    before = len(stage.sent)
    stage.wait(20)
    assert len(stage.sent) == before + 1


def test_a_snapshot_is_fetched_in_pieces_and_installed() -> None:
    stage = following()
    place = OffsetAndEpoch(20, 4)
    answer(stage, snapshot_id=fetch.SnapshotId(20, 4))
    for position, data in ((0, b"abc"), (3, b"de")):
        request = stage.requests(fetch_snapshot.Request)[0]
        assert partition_of(request).position == position
        part = fetch_snapshot.ResponsePartitionSnapshot(
            0, 0, fetch_snapshot.SnapshotId(20, 4), size=5, position=position
        )
        part.unaligned_records = data
        effects = stage.answer(request, snapshot_response(LEAD, None, part))
        assert WriteSnapshotPiece(place, position, data) in effects
    assert InstallSnapshot(place) in effects
    stage.log.log_start_offset = 20
    stage.log.snapshots = {place: b"abcde"}
    effects = stage.obey(stage.quorum.snapshot_installed(stage.now))
    assert Committed(20) in effects
    asked = partition_of(stage.requests(fetch.Request)[0])
    assert (asked.fetch_offset, asked.last_fetched_epoch) == (20, 4)


@pytest.mark.parametrize("is_elected", [True, False])
def test_snapshot_installed_after_the_leader_changed_is_kept(is_elected: bool) -> None:
    """A write takes its time: a later epoch may have begun when it ends."""
    stage = following()
    place = OffsetAndEpoch(20, 4)
    answer(stage, snapshot_id=fetch.SnapshotId(20, 4))
    request = stage.requests(fetch_snapshot.Request)[0]
    part = fetch_snapshot.ResponsePartitionSnapshot(
        0, 0, fetch_snapshot.SnapshotId(20, 4), size=3, position=0, unaligned_records=b"abc"
    )
    assert InstallSnapshot(place) in stage.answer(request, snapshot_response(LEAD, None, part))
    if is_elected:
        stage.led_by(3, 9)
    else:
        stage.vote(3, 9, (30, 8))
    stage.log.log_start_offset, stage.log.entries = 20, []
    stage.log.snapshots = {place: b"abc"}
    effects = stage.obey(stage.quorum.snapshot_installed(stage.now))
    assert Committed(20) in effects
    assert stage.quorum.high_watermark == 20


def test_a_snapshot_that_is_gone_is_asked_for_anew() -> None:
    stage = following()
    answer(stage, snapshot_id=fetch.SnapshotId(20, 4))
    request = stage.requests(fetch_snapshot.Request)[0]
    stage.answer(request, snapshot_response(LEAD, None, error=98))
    assert isinstance(stage.quorum.role, Follower)
    assert stage.quorum.role.snapshot is None
    stage.wait(20)
    assert stage.sent[-1].request is stage.requests(fetch.Request)[0]


def test_a_voter_that_moved_tells_the_leader() -> None:
    stage = Stage(endpoints={"CONTROLLER": address(9)})
    stage.led_by(2, 5)
    (request,) = stage.requests(update_raft_voter.Request)
    assert [(e.name, e.host) for e in request.listeners] == [("CONTROLLER", "host9")]
    answer_ = update_raft_voter.Response(
        current_leader=update_raft_voter.CurrentLeader(2, 5, "host2", 9093)
    )
    stage.answer(request, answer_)
    stage.wait(1900)
    assert len(stage.requests(update_raft_voter.Request)) == 1


def test_a_leader_that_says_it_does_not_lead_is_doubted() -> None:
    stage = following()
    request = stage.requests(fetch.Request, to=2)[0]
    stage.answer(request, fetch_response(Leadership(5, NodeId(-1)), None, error=6))
    assert isinstance(stage.quorum.role, Follower)
    assert stage.quorum.role.stand_at is not None
