"""Bugs that show where safety is changed at run time, and where disks change bits."""

from collections.abc import Iterator
from typing import Any

import pytest

from ottla.broker.controller.metadata_commits import MetadataCommits
from ottla.broker.coordinators.machine_partition import MachinePartition
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.replicas import fetcher as replica_fetcher
from ottla.client import unpacking
from ottla.env.disk import Buffer
from ottla.metadata.decisions import config_changes
from ottla.metadata.decisions.sessions import Sessions
from ottla.metadata.image import snapshot
from ottla.metadata.image.features import METADATA_VERSION, raised_alone
from ottla.metadata.image.image import ClusterImage
from ottla.model.errors import Refusal
from ottla.model.types import Offset
from ottla.protocol.metadata_records import FeatureLevelRecord
from ottla.records.batch import Batch, walk_batches


def keeps_the_elr_under_another_minimum(patch: pytest.MonkeyPatch) -> None:
    """A change of min.insync.replicas leaves replicas eligible that may lack committed records."""
    patch.setattr(config_changes, "cleared", lambda *_: [])


def hands_over_to_silent_brokers(patch: pytest.MonkeyPatch) -> None:
    """A stopping broker is replaced by others that were heard before, and have lost power since."""
    patch.setattr(Sessions, "has_read_announcement", lambda self, _, n: self.has_contacted(n))


class _Unchecked:
    """A batch whose checksum always matches."""

    is_valid = True

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    def __getattr__(self, name: str) -> object:
        return getattr(self._batch, name)


def believes_damaged_batches(patch: pytest.MonkeyPatch) -> None:
    """A client does not compare checksums."""

    def unchecked(data: Buffer) -> Iterator[_Unchecked]:
        return (_Unchecked(batch) for batch in walk_batches(data))

    patch.setattr(unpacking, "walk_batches", unchecked)


def replicates_damaged_batches(patch: pytest.MonkeyPatch) -> None:
    """A follower appends batches whose checksum does not match."""

    def whole_batches(data: Buffer, offset: Offset, *, epoch_max: int) -> list[Batch]:
        batches = [b for b in walk_batches(data) if b.next_offset > offset]
        return [batch for batch in batches if batch.leader_epoch <= epoch_max]

    patch.setattr(replica_fetcher, "whole_batches", whole_batches)


def starts_from_the_checkpoint(patch: pytest.MonkeyPatch) -> None:
    """A partition that gets other replicas forgets how far it was committed."""
    forget = Partitions._forget

    def forget_more(self: Partitions, partition: Partition) -> None:
        forget(self, partition)
        partition.log.high_watermark = partition.log.log_start_offset

    patch.setattr(Partitions, "_forget", forget_more)


def drops_the_coordinator_with_a_refused_write(patch: pytest.MonkeyPatch) -> None:
    """A coordinator whose log cannot take a decision gives up all its groups."""
    check = MachinePartition._check_writable

    def check_and_drop(self: MachinePartition[Any, Any]) -> None:
        try:
            check(self)
        except Refusal:
            self.drop()
            raise

    patch.setattr(MachinePartition, "_check_writable", check_and_drop)


def raises_lowered_features_at_each_start(patch: pytest.MonkeyPatch) -> None:
    """A single node takes a level of 0 for one that was never set."""
    began = MetadataCommits.began

    def began_and_raised(self: MetadataCommits, epoch: int) -> None:
        began(self, epoch)
        assert self.active is not None
        if raised := raised_alone(self.active.controller.image.features):
            self.active.write_records(raised)

    patch.setattr(MetadataCommits, "began", began_and_raised)


def forgets_features_in_snapshots(patch: pytest.MonkeyPatch) -> None:
    """A snapshot of the metadata has only metadata.version."""

    def features(image: ClusterImage) -> Iterator[FeatureLevelRecord]:
        yield FeatureLevelRecord(METADATA_VERSION, image.features[METADATA_VERSION])

    patch.setattr(snapshot, "_features", features)
