import pytest

from ottla.broker.metadata_log import FormatRefused, MetadataLog
from ottla.metadata.batches import batches_in, control_batch, data_batches, encoded, read_controls
from ottla.model.errors import Damaged
from ottla.model.types import ZERO_UUID, NodeId
from ottla.protocol.control_records import KRaftVersionRecord, LeaderChangeMessage, VotersRecord
from ottla.protocol.metadata_records import TopicRecord
from ottla.quorum.election_state import ElectionState, from_json
from ottla.quorum.voters import Address, Voter, Voters
from ottla.storage.identity import read_meta
from tests.unit.broker.driving import LOG, ONE, SEGMENT, Node, run

STATIC = Voters.of([Voter(ONE, ZERO_UUID, {"CONTROLLER": Address("h", 9093)})])


def opened(node: Node) -> MetadataLog:
    meta = read_meta(node.disk, "/data")
    assert meta is not None
    assert meta.directory_id is not None
    return MetadataLog(node.env, ONE, meta.directory_id, node.settings)


def loaded(node: Node) -> tuple[MetadataLog, list[object]]:
    log = opened(node)
    return log, [record for _, record in log.load()]


def first_controls(node: Node) -> list[object]:
    _, batch = next(iter(batches_in(node.disk.read(SEGMENT), SEGMENT)))
    return list(read_controls(batch, SEGMENT, 0))


def test_the_first_epoch_of_dynamic_voters_writes_them_into_the_log() -> None:
    node = Node()
    node.format()
    log, records = loaded(node)
    assert records == []
    run(log.begin_epoch(node.clock.wall()))
    controls = first_controls(node)
    assert [type(c) for c in controls] == [LeaderChangeMessage, KRaftVersionRecord, VotersRecord]
    assert from_json(node.disk.read(f"{LOG}/quorum-state")) == ElectionState(1, ONE)
    log.close()
    again, _ = loaded(node)
    assert again.quorum.are_voters_in_log
    run(again.begin_epoch(node.clock.wall()))
    assert again.end_offset == 4  # One record more: who leads the second epoch.


def test_static_voters_are_not_written() -> None:
    node = Node(static_voters=STATIC)
    node.format(standalone_at=None, is_dynamic=False)
    log, _ = loaded(node)
    run(log.begin_epoch(node.clock.wall()))
    assert [type(c) for c in first_controls(node)] == [LeaderChangeMessage]
    assert b'"currentVoters":[{"voterId":1}]' in node.disk.read(f"{LOG}/quorum-state")


def test_records_of_the_log_follow_those_of_the_snapshot() -> None:
    node = Node()
    node.format()
    log, _ = loaded(node)
    run(log.begin_epoch(node.clock.wall()))
    topics = [TopicRecord(f"t{n}", bytes([n]) * 16) for n in range(3)]
    for topic in topics:
        values = [encoded([topic], 30)]
        (batch,) = data_batches(values, log.end_offset, 1, node.clock.wall())
        log.append(batch, node.clock.wall())
        run(log.sync())
    log.close()
    assert loaded(node)[1] == topics


def test_the_epoch_is_above_that_of_the_log_even_without_the_vote_file() -> None:
    node = Node()
    node.format()
    for _ in range(2):
        log, _ = loaded(node)
        run(log.begin_epoch(node.clock.wall()))
        log.close()
        node.disk.remove(f"{LOG}/quorum-state")
    log, _ = loaded(node)
    run(log.begin_epoch(node.clock.wall()))
    assert log.quorum.state.epoch == 3


def test_a_log_that_begins_after_the_last_snapshot_is_refused() -> None:
    node = Node()
    node.format()
    log, _ = loaded(node)
    run(log.begin_epoch(node.clock.wall()))
    log.close()
    node.disk.rename(SEGMENT, f"{LOG}/{7:020d}.log")
    for name in node.disk.list(LOG):
        if name.startswith(f"{0:020d}.") and not name.endswith("checkpoint"):
            node.disk.remove(f"{LOG}/{name}")
    with pytest.raises(Damaged):
        loaded(node)


def test_a_snapshot_ahead_of_the_log_is_where_the_log_goes_on() -> None:
    node = Node()
    node.format()
    bootstrap = f"{LOG}/{0:020d}-{0:010d}.checkpoint"
    node.disk.rename(bootstrap, f"{LOG}/{40:020d}-{2:010d}.checkpoint")
    log, _ = loaded(node)
    assert log.end_offset == log.log_start_offset == 40
    run(log.begin_epoch(node.clock.wall()))
    assert log.quorum.state.epoch == 3


def test_a_vote_file_that_makes_no_sense_is_damage() -> None:
    node = Node()
    node.format()
    opened(node)
    node.disk.open(f"{LOG}/quorum-state", create=True).append([b"{"])
    with pytest.raises(Damaged, match="quorum-state"):
        opened(node)


def test_another_topics_directory_is_no_metadata_log() -> None:
    node = Node()
    node.format()
    opened(node)
    path = f"{LOG}/partition.metadata"
    file = node.disk.open(path)
    file.truncate(0)
    file.append([b"version: 0\ntopic_id: aZSxcrjtRrO_dWhnyP37Bw"])
    with pytest.raises(Damaged, match="not a metadata log"):
        opened(node)


def test_a_kraft_version_above_ours_is_refused_by_name() -> None:
    node = Node()
    node.format()
    log, _ = loaded(node)
    controls = [KRaftVersionRecord(kraft_version=2)]
    log.append(control_batch(controls, log.end_offset, 1, node.clock.wall()), node.clock.wall())
    log.close()
    with pytest.raises(FormatRefused, match=r"kraft.version 2"):
        loaded(node)


def test_a_torn_tail_is_cut_and_what_is_before_it_stays() -> None:
    node = Node()
    node.format()
    log, _ = loaded(node)
    run(log.begin_epoch(node.clock.wall()))
    log.close()
    size = node.disk.size(SEGMENT)
    node.disk.open(SEGMENT).append([node.disk.read(SEGMENT)[: size // 2]])
    log, _ = loaded(node)
    assert node.disk.size(SEGMENT) == size
    assert log.end_offset == 3


def test_a_directory_of_static_voters_needs_the_setting_that_names_them() -> None:
    node = Node()
    node.format(standalone_at=None, is_dynamic=False)
    log, _ = loaded(node)
    with pytest.raises(FormatRefused, match=r"set controller.quorum.voters"):
        run(log.begin_epoch(node.clock.wall()))


def test_one_voter_of_several_does_not_lead_alone() -> None:
    voters = Voters.of([Voter(NodeId(n), bytes([n]) * 16, {}) for n in (1, 2, 3)])
    node = Node()
    node.format(standalone_at=None, initial_voters=voters)
    log, _ = loaded(node)
    with pytest.raises(FormatRefused, match=r"one of 3 voters' \(1, 2, 3\)"):
        run(log.begin_epoch(node.clock.wall()))


def test_a_node_on_another_disk_is_no_voter() -> None:
    voters = Voters.of([Voter(NodeId(2), b"\2" * 16, {})])
    node = Node()
    node.format(standalone_at=None, initial_voters=voters)
    log, _ = loaded(node)
    with pytest.raises(FormatRefused, match=r"not among the voters"):
        run(log.begin_epoch(node.clock.wall()))
