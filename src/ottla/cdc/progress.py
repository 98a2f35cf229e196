"""Progress of a tail: phase, counts, lag."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ottla.model.types import Millis


@dataclass(slots=True)
class Progress:
    """Counters that only grow, and the lag; read by the display at any time."""

    phase: str = "starting"  # Then: snapshot, stream.
    rows: int = 0  # Of the snapshot.
    changes: int = 0
    passed_over: int = 0  # Sent again by the database, and already written.
    commits: int = 0
    confirmed_lsn: int = 0
    wal_lsn: int = 0

    @property
    def lag_bytes(self) -> int:
        """Size of the log that the database retains for this tail."""
        return max(self.wal_lsn - self.confirmed_lsn, 0) if self.confirmed_lsn else 0


@dataclass(slots=True)
class Rate:
    """Changes per second, over the last few samples."""

    looks_max: int = 10
    _looks: list[tuple[Millis, int]] = field(default_factory=list)

    def look(self, now: Millis, count: int) -> float:
        self._looks.append((now, count))
        del self._looks[: -self.looks_max]
        (first, before), (last, after) = self._looks[0], self._looks[-1]
        return (after - before) * 1000 / (last - first) if last > first else 0.0


Say = Callable[[str], None]
