"""The leader's side of fetches."""

import pickle

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import fetch_snapshot
from ottla.quorum.log_view import OffsetAndEpoch
from ottla.quorum.messages import partition_of, snapshot_request
from tests.simulation.quorum_node import Entry
from tests.unit.quorum.scene import CLUSTER, Stage, key


def leading(*epochs: int) -> Stage:
    stage = Stage(epochs=epochs)
    stage.elect()
    return stage


def append(stage: Stage) -> None:
    stage.log.entries.append(Entry(stage.quorum.state.epoch, "more"))
    stage.obey(stage.quorum.appended(stage.now))


def test_a_fetch_gets_what_follows_and_says_how_far_its_disk_is() -> None:
    stage = leading()
    end = stage.log.end_offset
    part = stage.fetch(2, 0, 0)
    assert pickle.loads(part.records)[0] == 0
    assert part.high_watermark == -1  # Nothing of this epoch is committed yet.
    assert stage.fetch(2, end, 1).high_watermark == end
    assert stage.quorum.high_watermark == end


def test_what_only_the_leader_has_on_disk_is_not_committed() -> None:
    stage = leading()
    append(stage)
    assert stage.quorum.high_watermark is None


def test_a_fetch_waits_for_news_until_its_time_is_over() -> None:
    stage = leading()
    end = stage.log.end_offset
    stage.fetch(2, end, 1)
    assert stage.fetch(2, end, 1, wait_ms=500, knows=end) is None
    stage.wait(499)
    assert len(stage.quorum.parked) == 1
    stage.wait(1)
    assert partition_of(stage.replies[-1]).records == b""
    assert stage.fetch(2, end, 1, wait_ms=500, knows=end) is None
    append(stage)
    assert partition_of(stage.replies[-1]).records


def test_a_follower_hears_at_once_that_more_is_committed() -> None:
    stage = leading()
    end = stage.log.end_offset
    assert stage.fetch(3, end, 1, wait_ms=500, knows=-1).high_watermark == end
    append(stage)
    stage.fetch(3, end, 1)
    assert stage.fetch(3, end + 1, 1, wait_ms=500, knows=end) is None
    stage.obey(stage.quorum.synced(end + 1, stage.now))
    assert partition_of(stage.replies[-1]).high_watermark == end + 1


def test_a_new_leader_says_nothing_of_what_it_knew_as_a_follower() -> None:
    stage = Stage(epochs=[1, 1, 1])
    stage.quorum.high_watermark = 1  # Others may have heard of more.
    stage.elect()
    end = stage.log.end_offset
    assert stage.fetch(2, 3, 1).high_watermark == -1
    assert stage.fetch(3, 9, 9).high_watermark == -1  # Also where logs part.
    assert stage.fetch(2, end, stage.log.last_epoch).high_watermark == end


def test_a_follower_whose_log_parts_is_told_where() -> None:
    stage = leading(1, 1)
    part = stage.fetch(2, 9, 1)
    assert (part.diverging_epoch.epoch, part.diverging_epoch.end_offset) == (1, 2)
    assert stage.quorum.high_watermark is None  # Its offset counts for nothing.


def test_follower_of_equal_length_diverges_by_the_epoch_of_its_last_entry() -> None:
    """Divergence by epoch: offsets alone would take the two logs for one."""
    stage = Stage(epochs=(1, 1, 3))
    stage.elect()
    end, epoch = stage.log.end_offset, stage.quorum.state.epoch
    for offset, last_epoch in ((3, 2), (2, 2), (end, 3), (end - 1, 2)):
        answer = stage.fetch(2, offset, last_epoch)
        parting = (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset)
        assert parting == ((3, 3) if last_epoch == 3 else (1, 2)), (offset, last_epoch)
        assert not answer.records
        assert stage.quorum.high_watermark is None  # A log that diverges confirms nothing.
    assert not stage.fetch(2, end, epoch).error_code
    assert stage.quorum.high_watermark == end


def test_a_fetch_in_another_epoch_is_refused_with_the_leaders_name() -> None:
    stage = leading(4)
    epoch = stage.quorum.state.epoch
    for other, code in (
        (epoch - 1, ErrorCode.FENCED_LEADER_EPOCH),
        (epoch + 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ):
        stage.quorum.state = stage.quorum.state  # The request is built by hand below.
        request = _fetch_in(other)
        part = partition_of(stage.ask(request))
        assert part.error_code == code
        assert (part.current_leader.leader_id, part.current_leader.leader_epoch) == (1, epoch)


def _fetch_in(epoch: int) -> object:
    from ottla.quorum.messages import fetch_request

    place = OffsetAndEpoch(0, 0)
    return fetch_request(CLUSTER, epoch, key(2), place, None, wait_ms=0, bytes_max=1)


def test_who_does_not_lead_says_who_does() -> None:
    stage = Stage()
    stage.led_by(3, 4)
    part = stage.fetch(2, 0, 0)
    assert part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert part.current_leader.leader_id == 3
    assert stage.replies[-1].node_endpoints[0].host == "host3"


def test_pieces_of_a_snapshot_are_served() -> None:
    stage = leading(1, 1)
    epoch = stage.quorum.state.epoch
    place = OffsetAndEpoch(2, 1)
    stage.log.snapshots = {place: b"snapshot"}
    stage.log.log_start_offset = 2
    del stage.log.entries[:2]
    told = stage.fetch(2, 0, 0)
    assert (told.snapshot_id.end_offset, told.snapshot_id.epoch) == place
    pieces = b""
    for position in (0, 5):
        request = snapshot_request(CLUSTER, epoch, key(2), place, position, 5)
        part = partition_of(stage.ask(request))
        assert part.size == 8
        pieces += bytes(part.unaligned_records)
    assert pieces == b"snapshot"
    for other, position, code in (
        (OffsetAndEpoch(1, 1), 0, ErrorCode.SNAPSHOT_NOT_FOUND),
        (place, 8, ErrorCode.POSITION_OUT_OF_RANGE),
        (place, -1, ErrorCode.POSITION_OUT_OF_RANGE),  # The log is not asked for such a place.
    ):
        request = snapshot_request(CLUSTER, epoch, key(2), other, position, 5)
        response = stage.ask(request)
        assert isinstance(response, fetch_snapshot.Response)
        assert partition_of(response).error_code == code
