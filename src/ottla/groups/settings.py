"""What the broker's settings say about groups."""

from dataclasses import dataclass

from ottla.model.types import Millis

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000  # How long a first JoinGroup may wait unanswered.


@dataclass(frozen=True, slots=True)
class GroupSettings:
    initial_rebalance_delay_ms: Millis = 3000
    session_timeout_ms_min: Millis = 6000
    session_timeout_ms_max: Millis = 1_800_000
    size_max: int = 2**31 - 1
    offset_metadata_size_max: int = 4096
    offsets_retention_ms: Millis = 7 * 24 * 3600 * 1000
    consumer_heartbeat_interval_ms: Millis = 5000
    consumer_session_timeout_ms: Millis = 45_000
    consumer_size_max: int = 2**31 - 1
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
