"""A long recovery says how far it is, a short one says nothing."""

import logging

import pytest

from ottla.broker.partitions.recovery_progress import TOLD_EVERY_MS, RecoveryProgress
from ottla.model.types import Monotonic, WallTime


class Clock:
    now = 1000

    def monotonic(self) -> Monotonic:
        return Monotonic(self.now)

    counting_sleep = monotonic

    def wall(self) -> WallTime:
        return WallTime(0)


def test_it_speaks_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock = Clock()
    progress = RecoveryProgress(clock)
    progress("a.log", 1 << 20, 10 << 20)
    assert not caplog.records
    clock.now += TOLD_EVERY_MS
    progress("a.log", 5 << 20, 10 << 20)
    progress("a.log", 6 << 20, 10 << 20)
    assert [record.getMessage() for record in caplog.records] == [
        "recovering a.log: 5 of 10 MB scanned"
    ]
    clock.now += TOLD_EVERY_MS
    progress("b.log", 0, 10 << 20)
    assert len(caplog.records) == 2
