# ruff: noqa: ANN401  What is asked for is of several types.

from random import Random
from typing import Any

import pytest

from ottla.broker.node.directory_format import (
    Format,
    bootstrap_records,
    format_directories,
    may_format_unasked,
)
from ottla.metadata.image.snapshot_file import read_snapshot, snapshot_bytes
from ottla.model.errors import FormatRefused
from ottla.model.types import NodeId, WallTime
from ottla.protocol.metadata_records import (
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from ottla.quorum.voters import Address, Voter, Voters
from ottla.simulation.world.disk import Crashed, SimulatedDisk
from ottla.storage.identity import read_meta

CLUSTER = "aZSxcrjtRrO_dWhnyP37Bw"
NOW = WallTime(1_794_794_142_427)
CONTROLLER = {"CONTROLLER": Address("127.0.0.1", 21201)}
VOTERS_FILE = "/a/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
METADATA_30 = FeatureLevelRecord("metadata.version", 30)


def wanted(**change: Any) -> Format:
    fields: dict[str, Any] = {
        "cluster_id": CLUSTER,
        "node_id": NodeId(1),
        "directories": ["/a", "/b"],
        "metadata_directory": "/a",
        "standalone_at": CONTROLLER,
    }
    return Format(**(fields | change))


def formatted(disk: SimulatedDisk | None = None, **change: Any) -> SimulatedDisk:
    disk = disk or SimulatedDisk(Random(0))
    format_directories(disk, wanted(**change), NOW, Random(1).randbytes)
    return disk


def test_every_directory_gets_its_identity_and_the_first_records() -> None:
    disk = formatted()
    metas = [read_meta(disk, directory) for directory in ("/a", "/b")]
    assert [(m.cluster_id, m.node_id) for m in metas if m] == [(CLUSTER, 1)] * 2
    assert len({m.directory_id for m in metas if m}) == 2
    for directory in ("/a", "/b"):
        path = f"{directory}/bootstrap.checkpoint"
        assert read_snapshot(disk.read(path), path).records == [METADATA_30]


def test_a_standalone_node_is_the_voter_of_its_own_log() -> None:
    disk = formatted()
    snapshot = read_snapshot(disk.read(VOTERS_FILE), VOTERS_FILE)
    meta = read_meta(disk, "/a")
    assert meta is not None
    assert meta.directory_id is not None
    assert snapshot.kraft_version == 1
    assert snapshot.last_timestamp == NOW
    assert snapshot.voters is not None
    assert Voters.from_record(snapshot.voters) == Voters.of(
        [Voter(NodeId(1), meta.directory_id, CONTROLLER)]
    )


def test_the_voters_file_is_kafkas_byte_for_byte() -> None:
    """As Kafka 4.3.1's `kafka-storage format --standalone` wrote it, checksums included."""
    voter = Voter(NodeId(1), bytes.fromhex("d7c7dc84ac3443dd8801aa89d1c8ab5c"), CONTROLLER)
    header, _ = snapshot_bytes(
        [],
        30,
        now=WallTime(0x01A1E2111BE5),
        last_timestamp=0x01A1E2111BDB,
        epoch=0,
        voters=Voters.of([voter]).to_record(),
    )
    assert header.hex() == (
        "00000000000000000000009a0000000002ad589651002000000002000001a1e2111be5000001a1e2111be5"
        "ffffffffffffffffffffffffffff000000032a0000000800000003160000000001a1e2111bdb00001e0000"
        "0208000000050a000000010000820100000408000000066e00000200000001d7c7dc84ac3443dd8801aa89"
        "d1c8ab5c020b434f4e54524f4c4c45520a3132372e302e302e3152d1000000000100000000"
    )
    _, footer = snapshot_bytes(
        [],
        30,
        now=WallTime(0x01A1E2111BEC),
        last_timestamp=0,
        epoch=0,
        voters=Voters.of([voter]).to_record(),
    )
    assert footer.hex() == (
        "00000000000000030000003f00000000027121f0ce002000000000000001a1e2111bec000001a1e2111bec"
        "ffffffffffffffffffffffffffff000000011a00000008000000040600000000"
    )


def test_static_voters_leave_the_log_to_the_first_start() -> None:
    disk = formatted(standalone_at=None, is_dynamic=False)
    assert not disk.exists("/a/__cluster_metadata-0")


def test_initial_controllers_say_the_id_of_the_metadata_directory() -> None:
    voters = Voters.of(
        [Voter(NodeId(n), bytes([n]) * 16, {"CONTROLLER": Address("h", 9093)}) for n in (1, 2)]
    )
    disk = formatted(standalone_at=None, initial_voters=voters)
    meta = read_meta(disk, "/a")
    assert meta is not None
    assert meta.directory_id == b"\1" * 16
    snapshot = read_snapshot(disk.read(VOTERS_FILE), VOTERS_FILE)
    assert snapshot.voters == voters.to_record()


def test_what_is_formatted_is_left_alone() -> None:
    disk = formatted(directories=["/a"])
    before = disk.read("/a/meta.properties")
    with pytest.raises(FormatRefused, match="Log directory /a is already formatted"):
        formatted(disk)
    assert not disk.exists("/b")
    formatted(disk, ignore_formatted=True)
    assert disk.read("/a/meta.properties") == before
    assert read_meta(disk, "/b") is not None
    lines = format_directories(disk, wanted(ignore_formatted=True), NOW, Random(1).randbytes)
    assert lines == ["All of the log directories are already formatted."]


def test_another_clusters_directory_is_never_taken() -> None:
    disk = formatted(directories=["/a"])
    with pytest.raises(FormatRefused, match=f"of the cluster {CLUSTER}"):
        formatted(disk, cluster_id="other", ignore_formatted=True)


def test_an_older_release_gets_its_metadata_version() -> None:
    disk = formatted(release_version="4.0")
    path = "/a/bootstrap.checkpoint"
    assert read_snapshot(disk.read(path), path).records == [
        FeatureLevelRecord("metadata.version", 25)
    ]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"release_version": "9.9"}, "Unknown metadata.version '9.9'. Supported"),
        ({"features": {"metadata.version": 30}}, "Use --release-version instead"),
        ({"features": {"foo": 1}}, "Unsupported feature: foo. Supported features are: elig"),
        ({"features": {"share.version": 1}}, "share.version cannot be 1 yet"),
        ({"features": {"group.version": 2}}, "group.version cannot be 2"),
        ({"features": {"kraft.version": 0}}, "kraft.version 0 does not fit"),
        ({"metadata_directory": "/c"}, "/c was not one of the given directories"),
    ],
)
def test_what_cannot_be_formatted_is_refused_in_a_sentence(
    change: dict[str, Any], sentence: str
) -> None:
    disk = SimulatedDisk(Random(0))
    with pytest.raises(FormatRefused, match=sentence):
        formatted(disk, **change)
    assert not disk.exists("/a")


def test_a_feature_at_level_zero_is_simply_not_finalized() -> None:
    disk = formatted(features={"group.version": 0, "kraft.version": 1})
    path = "/a/bootstrap.checkpoint"
    assert read_snapshot(disk.read(path), path).records == [METADATA_30]


def test_a_crash_while_formatting_leaves_the_rest_to_the_next_try() -> None:
    total = formatted().operations
    for moment in range(1, total + 1):
        disk = SimulatedDisk(Random(moment))
        disk.crash_at = moment
        with pytest.raises(Crashed):
            formatted(disk)
        disk.cut_power()
        formatted(disk, ignore_formatted=True)
        for directory in ("/a", "/b"):
            assert read_meta(disk, directory) is not None
        read_snapshot(disk.read(VOTERS_FILE), VOTERS_FILE)


def test_the_first_records_of_a_cluster_are_one_transaction() -> None:
    disk = formatted()
    assert bootstrap_records(disk, "/a", isr_min=1) == [
        BeginTransactionRecord(name="Bootstrap records"),
        METADATA_30,
        EndTransactionRecord(),
    ]


def test_with_elr_the_cluster_has_a_minimum_of_in_sync_replicas_from_the_start() -> None:
    disk = formatted()
    elr = FeatureLevelRecord("eligible.leader.replicas.version", 1)
    batches = snapshot_bytes([METADATA_30, elr], 30, now=NOW, last_timestamp=0, epoch=0)
    disk.remove("/a/bootstrap.checkpoint")
    disk.open("/a/bootstrap.checkpoint", create=True).append(list(batches))
    assert bootstrap_records(disk, "/a", isr_min=2)[1:-1] == [
        METADATA_30,
        elr,
        ConfigRecord(4, "", "min.insync.replicas", "2"),
    ]


def test_only_a_lonely_node_with_empty_disks_formats_unasked() -> None:
    disk = SimulatedDisk(Random(0))
    disk.make_directory("/a/lost+found")
    assert may_format_unasked(disk, ["/a", "/b"], [NodeId(1)])
    assert not may_format_unasked(disk, ["/a", "/b"], [NodeId(1), NodeId(2)])
    disk.open("/a/something", create=True)
    assert not may_format_unasked(disk, ["/a", "/b"], [NodeId(1)])
