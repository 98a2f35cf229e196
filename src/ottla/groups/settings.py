"""What the broker's settings say about groups, and what a group may have of its own."""

from dataclasses import dataclass
from enum import Enum

from ottla.model.types import Millis

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000  # How long a first JoinGroup may wait unanswered.


class MigrationPolicy(Enum):
    """Which way a group in use may go between the classic and the new protocol."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def is_upgrade_allowed(self) -> bool:
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def is_downgrade_allowed(self) -> bool:
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


@dataclass(frozen=True, slots=True)
class ConsumerTimes:
    """The times of a consumer group (KIP-848), which each group may set for itself."""

    session_timeout_ms: Millis = 45_000
    heartbeat_interval_ms: Millis = 5000
    assignment_interval_ms: Millis = 1000  # The least time between two targets.


@dataclass(frozen=True, slots=True)
class GroupSettings:
    initial_rebalance_delay_ms: Millis = 3000
    session_timeout_ms_min: Millis = 6000
    session_timeout_ms_max: Millis = 1_800_000
    size_max: int = 2**31 - 1
    offset_metadata_size_max: int = 4096
    offsets_retention_ms: Millis = 7 * 24 * 3600 * 1000
    consumer_size_max: int = 2**31 - 1
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    migration: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
