"""Metadata logs on simulated disks: loaded, written to, and snapshots copied between them."""

from ottla.broker.controller.metadata_log import MetadataLog
from ottla.metadata.image.batches import control_batch, data_batches, encoded
from ottla.metadata.image.snapshot_file import SnapshotId
from ottla.protocol.control_records import QuorumControl
from ottla.protocol.metadata_records import TopicRecord
from ottla.quorum.log_view import OffsetAndEpoch
from ottla.records.batch import Batch
from tests.unit.broker.driving import Node, run

TOPICS = [TopicRecord(f"t{n}", bytes([n]) * 16) for n in range(3)]


def loaded(node: Node) -> tuple[MetadataLog, list[object]]:
    log = MetadataLog(node.env, node.settings)
    records: list[object] = [record for _, record in log.load_snapshot()]
    log.open()
    newest = log.newest_snapshot
    records += [r for _, r in log.records(newest.offset if newest else 0, log.end_offset)]
    return log, records


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
