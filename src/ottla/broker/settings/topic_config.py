"""A topic's configuration as it counts here: its own configs over the broker's defaults.

Read when a partition is opened and again when configs change, never per request.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ottla.broker.settings.settings import Settings
from ottla.metadata.configs.catalogue import TOPIC_CONFIGS, TOPIC_SYNONYMS
from ottla.metadata.configs.definition import ConfigValueError
from ottla.model.types import NodeId
from ottla.records.admission import AdmissionPolicy
from ottla.storage.config import LogConfig


@dataclass(frozen=True, slots=True)
class TopicConfig:
    cleanup_policy: list[str]
    compression_gzip_level: int
    compression_lz4_level: int
    compression_type: str
    compression_zstd_level: int
    delete_retention_ms: int
    file_delete_delay_ms: int
    flush_messages: int
    flush_ms: int
    follower_replication_throttled_replicas: list[str]
    index_interval_bytes: int
    leader_replication_throttled_replicas: list[str]
    max_compaction_lag_ms: int
    max_message_bytes: int
    message_timestamp_after_max_ms: int
    message_timestamp_before_max_ms: int
    message_timestamp_type: str
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    min_insync_replicas: int
    retention_bytes: int
    retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    segment_jitter_ms: int
    segment_ms: int
    unclean_leader_election_enable: bool

    @classmethod
    def resolve(cls, settings: Settings, overrides: Mapping[str, str]) -> "TopicConfig":
        """What the topic sets, else what the broker has; a value that cannot be read is skipped."""
        names = [field.name for field in fields(cls)]
        values = {name: _value(name, settings, overrides) for name in names}
        # For tests of rolling: the segment size without its usual lower bound.
        internal = _override("internal.segment.bytes", overrides)
        if internal is not None:
            values["segment_bytes"] = internal
        return cls(**values)

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    def compression_level(self) -> int | None:
        """The level for the topic's own codec; None is the codec's default."""
        if self.compression_type == "gzip":
            return None if self.compression_gzip_level == -1 else self.compression_gzip_level
        if self.compression_type == "lz4":
            return self.compression_lz4_level
        return self.compression_zstd_level if self.compression_type == "zstd" else None

    def log_config(self, settings: Settings) -> LogConfig:
        """What the topic's logs have to know."""
        segment_ms = self.segment_ms
        if self.is_compacted:
            # Only sealed segments are cleaned: nothing may wait longer than it may stay dirty.
            segment_ms = min(segment_ms, self.max_compaction_lag_ms)
        return LogConfig(
            segment_bytes=self.segment_bytes,
            segment_ms=segment_ms,
            segment_jitter_ms=self.segment_jitter_ms,
            segment_index_bytes=self.segment_index_bytes,
            index_interval_bytes=self.index_interval_bytes,
            retention_ms=self.retention_ms,
            retention_bytes=self.retention_bytes,
            file_delete_delay_ms=self.file_delete_delay_ms,
            producer_id_expiration_ms=settings.producer_id_expiration_ms,
            delete_retention_ms=self.delete_retention_ms,
            compaction_lag_ms_min=self.min_compaction_lag_ms,
            compaction_lag_ms_max=self.max_compaction_lag_ms,
            dirty_ratio_min=self.min_cleanable_dirty_ratio,
            is_compacted=self.is_compacted,
            is_deleted="delete" in self.cleanup_policy,
        )

    def admission_policy(self, settings: Settings) -> AdmissionPolicy:
        """What decides whether a produced batch is let in."""
        return AdmissionPolicy(
            message_bytes_max=self.max_message_bytes,
            timestamp_type=self.message_timestamp_type,
            timestamp_before_ms_max=self.message_timestamp_before_max_ms,
            timestamp_after_ms_max=self.message_timestamp_after_max_ms,
            compression_type=self.compression_type,
            compression_level=self.compression_level(),
            is_compacted=self.is_compacted,
            full_validation=settings.ottla_record_validation == "full",
            decompressed_bytes_max=settings.ottla_record_decompressed_bytes_max,
        )


def is_throttled(replicas: list[str], index: int, node: NodeId) -> bool:
    """Whether a list of throttled replicas names this broker's replica of a partition."""
    return replicas == ["*"] or f"{index}:{node}" in replicas


def _value(attribute: str, settings: Settings, overrides: Mapping[str, str]) -> Any:  # noqa: ANN401
    name = attribute.replace("_", ".")
    own = _override(name, overrides)
    if own is not None:
        return own
    synonym = TOPIC_SYNONYMS.get(name)
    if synonym is None:  # Only a topic has it.
        return TOPIC_CONFIGS[name].parse(TOPIC_CONFIGS[name].default)
    return getattr(settings, synonym.replace(".", "_"))


def _override(name: str, overrides: Mapping[str, str]) -> Any:  # noqa: ANN401
    try:
        return TOPIC_CONFIGS[name].parse(overrides.get(name))
    except ConfigValueError:
        return None
