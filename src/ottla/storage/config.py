"""What a log has to know of its topic's configuration, with Apache Kafka's defaults."""

from dataclasses import dataclass

from ottla.model.types import Millis

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Names are Kafka's topic configs with their unit last; -1 is "no bound" as there."""

    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: Millis = 7 * DAY_MS
    segment_jitter_ms: Millis = 0
    segment_index_bytes: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096
    retention_ms: Millis = 7 * DAY_MS
    retention_bytes: int = -1
    file_delete_delay_ms: Millis = 60_000
    producer_id_expiration_ms: Millis = DAY_MS  # A broker config, the same for all of its logs.
    delete_retention_ms: Millis = DAY_MS  # How long a compacted log keeps tombstones.
    compaction_lag_ms_min: Millis = 0
    compaction_lag_ms_max: Millis = 2**63 - 1
    dirty_ratio_min: float = 0.5  # `min.cleanable.dirty.ratio`.
    is_compacted: bool = False  # cleanup.policy holds `compact`.
    is_deleted: bool = True  # cleanup.policy holds `delete`.
