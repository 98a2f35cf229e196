"""Real brokers replicate under faults, many worlds from seeds; and mistakes that they must find."""

from collections.abc import Callable

import pytest

from ottla.broker.partitions.replicated_partition import FollowedLog, ReplicatedPartition
from ottla.broker.replicas.sessions import ReplicaSession
from ottla.model.types import Offset
from ottla.replication.leader import Leader
from ottla.simulation.history.history import Violation
from tests.simulation.replicated_world import run

SEEDS = 3


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_that_was_acknowledged_is_lost(seed: int) -> None:
    done = run(seed)
    assert done["acked"] > 50
    assert done["read"] > 50


Mistake = Callable[[pytest.MonkeyPatch], None]


def acks_before_it_replicates(patch: pytest.MonkeyPatch) -> None:
    def flush(self: ReplicatedPartition, now: int) -> None:
        self._staged = [(_Early(appending), end) for appending, end in self._staged]  # type: ignore[misc]
        original(self, now)  # type: ignore[arg-type]

    original = ReplicatedPartition.flush
    patch.setattr(ReplicatedPartition, "flush", flush)


class _Early:
    """Whoever waits is answered as if acks=1 had been asked for."""

    acks_all = False

    def __init__(self, appending: object) -> None:
        self.appended = appending.appended  # type: ignore[attr-defined]
        self.failed = appending.failed  # type: ignore[attr-defined]


def commits_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Leader, "_high_watermark", lambda self, now: self._own_end)


def forgets_to_truncate(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FollowedLog, "last_epoch", property(lambda self: -1))


def believes_what_is_not_asked(patch: pytest.MonkeyPatch) -> None:
    """A follower counts as having what it was sent, not what it asks for."""

    def send(self: ReplicaSession, fetched: list) -> None:  # type: ignore[type-arg]
        for part in fetched:
            entry = self._entries.get(self._key(part.wanted))
            if part.records is not None and entry is not None and entry.partition is not None:
                end: Offset = entry.partition.log.end_offset
                entry.partition.fetched_by(self.node, end, self.broker_epoch)
        original(self, fetched)

    original = ReplicaSession._send
    patch.setattr(ReplicaSession, "_send", send)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("mistake", "seeds_max"),
    [
        (acks_before_it_replicates, 8),
        (commits_alone, 20),
        (forgets_to_truncate, 8),
        (believes_what_is_not_asked, 8),
    ],
)
def test_a_mistake_is_found(
    mistake: Mistake, seeds_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    for seed in range(seeds_max):
        try:
            run(seed)
        except (Violation, AssertionError):
            return
    pytest.fail(f"not found in {seeds_max} seeds")
