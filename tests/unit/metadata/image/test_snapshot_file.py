import pytest

from ottla.metadata.image.snapshot import records_of
from ottla.metadata.image.snapshot_file import (
    SnapshotId,
    read_snapshot,
    snapshot_bytes,
    snapshots_among,
)
from ottla.model.errors import Damaged
from ottla.model.types import WallTime
from ottla.protocol.control_records import Endpoint, KRaftVersionFeature, Voter, VotersRecord
from tests.unit.metadata.controller_driver import ControllerDriver

NOW = WallTime(1_700_000_000_000)
VOTERS = VotersRecord(
    0,
    [Voter(1, b"d" * 16, [Endpoint("CONTROLLER", "h", 9093)], KRaftVersionFeature(0, 1))],
)


def written(voters: VotersRecord | None = None) -> bytes:
    deciding = ControllerDriver()
    deciding.create("t", 2)
    batches = snapshot_bytes(
        records_of(deciding.image), 30, now=NOW, last_timestamp=77, epoch=3, voters=voters
    )
    return b"".join(batches)


def test_a_snapshot_is_read_as_it_was_written() -> None:
    snapshot = read_snapshot(written(VOTERS), "file")
    assert snapshot.voters == VOTERS
    assert (snapshot.kraft_version, snapshot.last_timestamp) == (1, 77)
    assert [type(record).__name__ for record in snapshot.records] == [
        "FeatureLevelRecord",
        "RegisterBrokerRecord",
        "TopicRecord",
        "PartitionRecord",
        "PartitionRecord",
    ]


def test_snapshot_of_static_voters_names_no_voters() -> None:
    snapshot = read_snapshot(written(), "file")
    assert (snapshot.kraft_version, snapshot.voters) == (0, None)


def test_a_snapshot_that_is_not_whole_is_damaged() -> None:
    data = written(VOTERS)
    for size in (0, 10, 166, len(data) - 75, len(data) - 1):
        with pytest.raises(Damaged) as damaged:
            read_snapshot(data[:size], "the.checkpoint")
        assert damaged.value.path == "the.checkpoint"


def test_bytes_after_the_footer_are_damage() -> None:
    data = written()
    with pytest.raises(Damaged, match="after the footer"):
        read_snapshot(data + data, "file")


def test_records_before_the_header_are_damage() -> None:
    data = written()
    header_size = int.from_bytes(data[8:12]) + 12
    with pytest.raises(Damaged, match="header"):
        read_snapshot(data[header_size:], "file")


def test_a_snapshots_name_tells_its_end_and_its_epoch() -> None:
    assert SnapshotId(84, 3).file_name == "00000000000000000084-0000000003.checkpoint"
    names = [
        "00000000000000000084-0000000003.checkpoint",
        "00000000000000000000-0000000000.checkpoint",
        "00000000000000000099-0000000003.checkpoint.part",
        "00000000000000000000.log",
        "bootstrap.checkpoint",
    ]
    assert snapshots_among(names) == [SnapshotId(0, 0), SnapshotId(84, 3)]
