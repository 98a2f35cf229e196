"""Bugs of a cluster to be switched on: what its simulation must find, or it would not find ours."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ottla.broker.controller.election_state_file import ElectionStateFile
from ottla.broker.controller.metadata_log import MetadataLog
from ottla.broker.fetch.response import Fetched
from ottla.broker.handlers.fetch import Fetching
from ottla.broker.liveness.own_session import OwnSession
from ottla.broker.machines.host import MachineHost
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.partitions.replicated_partition import FollowedLog, ReplicatedPartition
from ottla.broker.replicas.fetcher import ReplicaFetcher
from ottla.metadata.decisions import elections
from ottla.model.errors import Refusal
from ottla.model.types import Offset, WallTime
from ottla.quorum import elections as quorum_elections
from ottla.quorum import voter_changes
from ottla.quorum.election_state import ElectionState
from ottla.quorum.leadership import Leader as QuorumLeader
from ottla.quorum.machine import Quorum
from ottla.records.batch import Batch
from ottla.replication.leader import Leader
from ottla.simulation.world.disk import SimulatedDisk
from ottla.storage.producer_state import Completed, Producers

# ruff: noqa: ANN401  Options are of many kinds.

Mutant = Callable[[pytest.MonkeyPatch], None]


class _Early:
    """Whoever waits is answered as if acks=1 had been asked for."""

    acks_all = False

    def __init__(self, appending: object) -> None:
        self.appended = appending.appended  # type: ignore[attr-defined]
        self.failed = appending.failed  # type: ignore[attr-defined]


def acks_before_it_replicates(patch: pytest.MonkeyPatch) -> None:
    original = ReplicatedPartition.flush

    def flush(self: ReplicatedPartition, now: WallTime) -> None:
        self._staged = [(_Early(appending), end) for appending, end in self._staged]
        original(self, now)

    patch.setattr(ReplicatedPartition, "flush", flush)


def commits_alone(patch: pytest.MonkeyPatch) -> None:
    """The high watermark of a partition is what its leader has."""
    patch.setattr(Leader, "_high_watermark", lambda self, now: self._own_end)


def forgets_to_truncate(patch: pytest.MonkeyPatch) -> None:
    """A follower does not say in which epoch its last record was written."""
    patch.setattr(FollowedLog, "last_epoch", property(lambda self: -1))


def forgets_where_logs_begin(patch: pytest.MonkeyPatch) -> None:
    """A follower does not write down that records were deleted."""

    async def write_starts(self: Partitions) -> None: ...

    patch.setattr(Partitions, "write_starts", write_starts)


def trusts_its_old_image(patch: pytest.MonkeyPatch) -> None:
    """A broker that is heard again takes itself for what it was before it was paused."""
    patch.setattr(OwnSession, "may_be_fenced", property(lambda self: self._may_be_over))


def keeps_deleted_records(patch: pytest.MonkeyPatch) -> None:
    """A follower does not hear that its leader deleted records."""
    patch.setattr(ReplicaFetcher, "_advance_start", lambda *_: None)


def truncates_too_much(patch: pytest.MonkeyPatch) -> None:
    """A new follower cuts its log back to its high watermark, as Kafka did before KIP-101."""
    follow = ReplicatedPartition.follow

    def cut_and_follow(self: ReplicatedPartition, leader_epoch: int):  # noqa: ANN202
        self.stand_by()
        directory = self._registry.directories.of(self.log)
        if directory.lower_recovery_point(self.name, self.high_watermark):
            directory.checkpoint()
        directory.truncate_log(self.name, self.high_watermark)
        return follow(self, leader_epoch)

    patch.setattr(ReplicatedPartition, "follow", cut_and_follow)


def lets_anyone_join_the_isr(patch: pytest.MonkeyPatch) -> None:
    """Whoever fetches at all is proposed, however little it has."""
    patch.setattr(Leader, "_may_join", lambda *_: True)


def forgets_producers_at_failover(patch: pytest.MonkeyPatch) -> None:
    """What a follower appends tells it nothing of who sent it."""
    accept, note = Producers.accept, Producers.note
    accepting = []

    def accept_all(self: Producers, batch: Batch, *, is_client: bool) -> Completed | None:
        accepting.append(batch)
        try:
            return accept(self, batch, is_client=is_client)
        finally:
            accepting.pop()

    def note_own(self: Producers, batch: Batch) -> Completed | None:
        return note(self, batch) if accepting else None

    patch.setattr(Producers, "accept", accept_all)
    patch.setattr(Producers, "note", note_own)
    patch.setattr(Producers, "_check_sequence", lambda *_: None)


def does_not_notice_a_power_loss(patch: pytest.MonkeyPatch) -> None:
    """A broker comes back as if its machine had stayed up, and so stays in sync."""
    patch.setattr(SimulatedDisk, "mount_id", lambda *_: "always the same")


def leaves_isrs_to_unheard_brokers(patch: pytest.MonkeyPatch) -> None:
    """A broker that restarts leaves to others that may have lost power, and were not heard."""
    patch.setattr(elections, "_is_left_to_uncontacted", lambda *_: False)


def votes_twice(patch: pytest.MonkeyPatch) -> None:
    """Forget, at once, for whom it voted."""
    would_grant = quorum_elections.would_grant

    def forgetful(role, state, candidate, *, is_pre_vote, up_to_date):  # noqa: ANN001, ANN202
        state = replace(state, voted=-1)
        return would_grant(role, state, candidate, is_pre_vote=is_pre_vote, up_to_date=up_to_date)

    patch.setattr(quorum_elections, "would_grant", forgetful)


def does_not_write_votes(patch: pytest.MonkeyPatch) -> None:
    """Whoever is killed forgets its vote."""

    async def write(self: ElectionStateFile, state: ElectionState) -> None:
        self.state = state

    patch.setattr(ElectionStateFile, "write", write)


def commits_metadata_alone(patch: pytest.MonkeyPatch) -> None:
    """The high watermark of the metadata log is what its leader has."""
    patch.setattr(QuorumLeader, "majority_end", lambda self, _voters: self.synced_end)


def does_not_sync_the_metadata_log(patch: pytest.MonkeyPatch) -> None:
    """Say that it is on the disk, and go on."""

    async def sync(self: MetadataLog) -> Offset:
        end = self.storage.end_offset
        self.storage.durability.synced_to(end)
        return end

    patch.setattr(MetadataLog, "sync", sync)


def syncs_in_name_only(patch: pytest.MonkeyPatch) -> None:
    """Say that records are on the disk which are not."""
    patch.setattr("ottla.broker.partitions.log_sync.sync_all", lambda work: None)


def serves_what_is_not_committed(patch: pytest.MonkeyPatch) -> None:
    """Consumers are served up to the end of the leader's log."""
    read = Fetching._read

    def read_all(
        self: Fetching, partition: Partition, part: Fetched, left: int, **options: bool
    ) -> None:
        high_watermark = partition.high_watermark
        partition.high_watermark = partition.log.end_offset
        try:
            read(self, partition, part, left, **options)
        finally:
            partition.high_watermark = high_watermark

    patch.setattr(Fetching, "_read", read_all)


def sees_divergence_by_offset_alone(patch: pytest.MonkeyPatch) -> None:
    """A leader compares where a follower's log ends, not in which epoch (before KIP-279)."""

    def divergence(
        partition: Partition, *, fetch_offset: int, last_fetched_epoch: int
    ) -> tuple[int, int] | None:
        epoch_end = partition.epoch_end_offset(last_fetched_epoch)
        return epoch_end if fetch_offset > partition.log.end_offset else None

    patch.setattr("ottla.broker.replicas.sessions.divergence", divergence)


def answers_before_its_log_is_committed(patch: pytest.MonkeyPatch) -> None:
    """The end of a new leader's log counts as committed before it is."""
    begin = MachineHost.__init__

    def begin_committed(self: MachineHost[Any, Any, Any], *args: Any, **options: Any) -> None:
        begin(self, *args, **options | {"committed_end": None})

    patch.setattr(MachineHost, "__init__", begin_committed)


def changes_voters_too_early(patch: pytest.MonkeyPatch) -> None:
    """A new leader does not wait until a record of its own epoch is committed."""
    check = voter_changes._check

    def check_less(quorum: Quorum, cluster_id: str | None) -> None:
        try:
            check(quorum, cluster_id)
        except Refusal as refusal:
            if "establish HWM" not in (refusal.message or ""):
                raise

    patch.setattr(voter_changes, "_check", check_less)
