"""What a tail tells while it works: where it is, how much it has done, how far it is behind."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ottla.model.types import Millis


@dataclass(slots=True)
class Progress:
    """Numbers that only grow, but for the lag; whoever shows them looks when it likes."""

    phase: str = "starting"  # Then: snapshot, stream.
    rows: int = 0  # Of the snapshot.
    changes: int = 0
    passed_over: int = 0  # Sent again by the database, and written already.
    commits: int = 0
    confirmed_lsn: int = 0
    wal_lsn: int = 0

    @property
    def lag_bytes(self) -> int:
        """How much of its log the database keeps for this tail."""
        return max(self.wal_lsn - self.confirmed_lsn, 0) if self.confirmed_lsn else 0


@dataclass(slots=True)
class Rate:
    """Changes per second, over the last few looks."""

    looks_max: int = 10
    _looks: list[tuple[Millis, int]] = field(default_factory=list)

    def look(self, now: Millis, count: int) -> float:
        self._looks.append((now, count))
        del self._looks[: -self.looks_max]
        (first, before), (last, after) = self._looks[0], self._looks[-1]
        return (after - before) * 1000 / (last - first) if last > first else 0.0


Say = Callable[[str], None]
