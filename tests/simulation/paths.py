"""Counts how often a run takes the paths that hide bugs: hooks in the product, for tests alone.

`docs/internals/simulation.md` lists them; `test_paths.py` demands that a hundred seeds take each.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from ottla.broker.controller.active_controller import ActiveController
from ottla.broker.controller.metadata_commits import MetadataCommits
from ottla.broker.coordinators.machine_partition import MachinePartition
from ottla.broker.partitions.cleaner import Cleaner
from ottla.broker.replicas import sessions as replica_sessions
from ottla.broker.replicas.fetcher import ReplicaFetcher
from ottla.metadata.image.image import ClusterImage
from ottla.model.errors import Refusal
from ottla.model.types import Offset
from ottla.protocol.metadata_records import PartitionChangeRecord
from ottla.records.batch import Batch
from ottla.replication.leader import Leader
from ottla.simulation.clients.pipelined_producer import PipelinedProducer
from ottla.storage import loader, recovery
from ottla.storage.log import Log
from ottla.storage.producer_state import Duplicate, Producers
from ottla.storage.segments import Segments

# ruff: noqa: ANN401  Hooks take what the product's functions take.

PATHS = (
    "follower truncates",
    "divergence by epoch",
    "leader from the ELR",
    "leader without ISR and ELR",
    "ISR shrinks",
    "ISR grows",
    "duplicate of the last batch",
    "duplicate older than the last batch",
    "second batch in flight",
    "cleaner round",
    "retention deletes a segment",
    "follower deletes records",
    "torn tail cut",
    "metadata snapshot installed",
    "controller loses uncommitted decisions",
    "coordinator loads an uncommitted end",
)


def count_paths(patch: pytest.MonkeyPatch) -> Counter[str]:
    """From now on, and for as long as `patch` holds."""
    counts: Counter[str] = Counter()
    for install in (_replication, _elections, _producers, _storage, _metadata, _coordinators):
        install(patch, counts)
    return counts


def _before(patch: pytest.MonkeyPatch, owner: Any, name: str, look: Callable[..., None]) -> None:
    """`look` sees every call before it is made."""
    original = getattr(owner, name)

    def called(*args: Any, **options: Any) -> Any:
        look(*args, **options)
        return original(*args, **options)

    patch.setattr(owner, name, called)


def _after(patch: pytest.MonkeyPatch, owner: Any, name: str, look: Callable[..., None]) -> None:
    """`look` sees the result of every call, then its arguments."""
    original = getattr(owner, name)

    def called(*args: Any, **options: Any) -> Any:
        result = original(*args, **options)
        look(result, *args)
        return result

    patch.setattr(owner, name, called)


def _replication(patch: pytest.MonkeyPatch, counts: Counter[str]) -> None:
    def truncating(log: Log, offset: int) -> None:
        counts["follower truncates"] += offset < log.end_offset

    def divergence(leader: Any, *, fetch_offset: Offset, last_fetched_epoch: int) -> Any:
        found = diverging(leader, fetch_offset=fetch_offset, last_fetched_epoch=last_fetched_epoch)
        is_by_epoch = found is not None and fetch_offset <= leader.log.end_offset
        counts["divergence by epoch"] += is_by_epoch
        return found

    def starting(_: ReplicaFetcher, partition: Any, offset: int) -> None:
        counts["follower deletes records"] += offset > partition.log.log_start_offset

    def decided(leader: Leader, _proposal: Any, decided: Any, _now: Any) -> None:
        counts["ISR shrinks"] += len(decided.isr) < len(leader.isr)
        counts["ISR grows"] += len(decided.isr) > len(leader.isr)

    _before(patch, Log, "truncate_to", truncating)
    diverging = replica_sessions.divergence
    patch.setattr(replica_sessions, "divergence", divergence)
    _before(patch, ReplicaFetcher, "_advance_start", starting)
    _before(patch, Leader, "isr_decided", decided)


def _elections(patch: pytest.MonkeyPatch, counts: Counter[str]) -> None:
    def changing(image: ClusterImage, record: PartitionChangeRecord) -> None:
        topic = image.topics_by_id.get(record.topic_id)
        state = topic.partitions.get(record.partition_id) if topic is not None else None
        if state is None or record.leader is None or record.leader < 0:
            return
        is_in_sync = record.leader in state.isr
        counts["leader from the ELR"] += not is_in_sync and record.leader in state.elr
        counts["leader without ISR and ELR"] += not is_in_sync and record.leader not in state.elr

    from ottla.metadata.image import image as module

    fold = module._FOLDS[PartitionChangeRecord]

    def folded(image: ClusterImage, record: PartitionChangeRecord) -> None:
        changing(image, record)
        fold(image, record)

    patch.setitem(module._FOLDS, PartitionChangeRecord, folded)


def _producers(patch: pytest.MonkeyPatch, counts: Counter[str]) -> None:
    check = Producers.check

    def checked(self: Producers, batch: Batch, *, is_client: bool) -> None:
        try:
            check(self, batch, is_client=is_client)
        except Duplicate as duplicate:
            last = self.by_id[batch.producer_id].batches[-1]
            is_last = last.first_offset == duplicate.base_offset
            which = "of" if is_last else "older than"
            counts[f"duplicate {which} the last batch"] += 1
            raise

    def sending(_: PipelinedProducer, _place: Any, packages: list[Any]) -> None:
        counts["second batch in flight"] += len(packages) > 1

    patch.setattr(Producers, "check", checked)
    _before(patch, PipelinedProducer, "_attempt", sending)


def _storage(patch: pytest.MonkeyPatch, counts: Counter[str]) -> None:
    clean = Cleaner._clean

    async def cleaned(self: Cleaner, partition: Any) -> bool:
        is_done = await clean(self, partition)
        counts["cleaner round"] += is_done
        return is_done

    def dropping(*_: Any) -> None:
        counts["retention deletes a segment"] += 1

    def recovered(is_cut: bool, *_: Any) -> None:
        counts["torn tail cut"] += is_cut

    patch.setattr(Cleaner, "_clean", cleaned)
    _before(patch, Segments, "drop_oldest", dropping)
    patch.setattr("ottla.storage.loader.recover", recovery.recover)
    _after(patch, loader, "recover", recovered)


def _metadata(patch: pytest.MonkeyPatch, counts: Counter[str]) -> None:
    def installed(_: MetadataCommits) -> None:
        counts["metadata snapshot installed"] += 1

    def dropped(active: ActiveController, _: Refusal) -> None:
        counts["controller loses uncommitted decisions"] += bool(active.written or active.pending)

    _before(patch, MetadataCommits, "snapshot_installed", installed)
    _before(patch, ActiveController, "drop", dropped)


def _coordinators(patch: pytest.MonkeyPatch, counts: Counter[str]) -> None:
    def loading(machine: MachinePartition[Any, Any]) -> None:
        partition = machine.partition
        is_open = partition.high_watermark < partition.log.end_offset
        counts["coordinator loads an uncommitted end"] += is_open

    _before(patch, MachinePartition, "load", loading)
