"""Bugs to be switched on: what the simulation must find, or it would not find such bugs of ours."""

import asyncio
from collections.abc import Callable

import pytest

from ottla.broker.partitions.partition import Partition
from ottla.model.types import WallTime
from ottla.records.batch import Batch
from ottla.storage.producer_state import Completed, Duplicate, Producers
from ottla.storage.run_marks import CLEAN_SHUTDOWN, RunMarks
from ottla.storage.segment import scan

Mutant = Callable[[pytest.MonkeyPatch], None]


def replies_before_flush(patch: pytest.MonkeyPatch) -> None:
    """Answer at once, and write a little later."""

    def flush(self: Partition, now: WallTime) -> None:
        staged, self._staged = self._staged, []
        for appending, _ in staged:
            appending.appended(self)

        def write() -> None:
            self.log.flush(now)
            self.high_watermark = self.log.end_offset
            self._tell_watching()

        asyncio.get_running_loop().call_later(0.02, write)

    patch.setattr(Partition, "flush", flush)


def forgets_duplicates(patch: pytest.MonkeyPatch) -> None:
    """Append a batch again that was sent again."""
    accept = Producers.accept

    def accept_all(self: Producers, batch: Batch, *, is_client: bool) -> Completed | None:
        try:
            return accept(self, batch, is_client=is_client)
        except Duplicate:
            return None

    patch.setattr(Producers, "accept", accept_all)


def recovers_too_little(patch: pytest.MonkeyPatch) -> None:
    """Cut off the last good batch together with the torn end."""

    def scan_all_but_one(file, position, end):  # noqa: ANN001, ANN202
        return list(scan(file, position, end))[:-1]

    patch.setattr("ottla.storage.recovery.scan", scan_all_but_one)
    patch.setattr("ottla.storage.recovery._refuse_damage", lambda *args, **kwargs: None)


def recovers_nothing(patch: pytest.MonkeyPatch) -> None:
    """Take every stop for a clean one."""
    patch.setattr(RunMarks, "_exists", lambda self, name: name == CLEAN_SHUTDOWN)
    patch.setattr(RunMarks, "_read_broker_epoch", lambda self: None)
    patch.setattr(RunMarks, "begin", lambda self: None)


def syncs_in_name_only(patch: pytest.MonkeyPatch) -> None:
    """Say that files are on the disk which are not."""
    patch.setattr("ottla.broker.partitions.log_sync.sync_all", lambda work: None)


def shows_what_is_not_synced(patch: pytest.MonkeyPatch) -> None:
    """Let consumers read what a power loss may still take away."""
    flush = Partition.flush

    def flush_and_show(self: Partition, now: WallTime) -> None:
        flush(self, now)
        self.high_watermark = self.log.end_offset
        self._tell_watching()

    patch.setattr(Partition, "flush", flush_and_show)


def forgets_producers_on_restart(patch: pytest.MonkeyPatch) -> None:
    """Start with empty windows, so that a batch whose answer was lost is taken for a new one."""

    def check_nothing(self: Producers, batch: Batch, producer: object) -> None:
        pass

    patch.setattr(Producers, "load", lambda self, producers, end_offset: None)
    patch.setattr("ottla.storage.recovery.note_producer", lambda *args: None)
    patch.setattr("ottla.storage.loader.replay", lambda *args, **kwargs: None)
    patch.setattr(Producers, "_check_sequence", check_nothing)
