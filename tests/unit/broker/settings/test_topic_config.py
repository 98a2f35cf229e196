"""A topic's configuration as it counts."""

import pytest

from ottla.broker.settings.settings import Settings, zero_configuration
from ottla.broker.settings.topic_config import TopicConfig
from ottla.records.admission import AdmissionPolicy
from ottla.storage.config import LogConfig


def settings(**more: str) -> Settings:
    changes = {key.replace("_", "."): value for key, value in more.items()}
    return Settings.load({**zero_configuration("data"), **changes})


def test_without_any_config_the_defaults_are_kafkas() -> None:
    mine = settings()
    config = TopicConfig.resolve(mine, {})
    assert config.log_config(mine) == LogConfig()
    assert config.admission_policy(mine) == AdmissionPolicy()
    assert config.min_insync_replicas == 1


def test_the_topic_counts_before_the_broker() -> None:
    mine = settings(log_retention_hours="1", log_segment_bytes="2000000")
    config = TopicConfig.resolve(mine, {"segment.bytes": "3000000"})
    assert (config.retention_ms, config.segment_bytes) == (3_600_000, 3_000_000)


def test_a_config_changed_at_run_time_counts() -> None:
    mine = settings().with_dynamic({"message.max.bytes": "77"}, {})
    assert TopicConfig.resolve(mine, {}).admission_policy(mine).message_bytes_max == 77


def test_what_a_log_cannot_read_is_left_at_its_default() -> None:
    assert TopicConfig.resolve(settings(), {"retention.ms": "x"}).retention_ms == 604_800_000


def test_a_test_may_roll_segments_of_any_size() -> None:
    mine = settings()
    config = TopicConfig.resolve(mine, {"internal.segment.bytes": "100"})
    assert config.log_config(mine).segment_bytes == 100


@pytest.mark.parametrize(
    ("overrides", "level"),
    [
        ({"compression.type": "gzip"}, None),
        ({"compression.type": "gzip", "compression.gzip.level": "4"}, 4),
        ({"compression.type": "lz4"}, 9),
        ({"compression.type": "zstd", "compression.zstd.level": "-5"}, -5),
        ({"compression.type": "snappy"}, None),
        ({}, None),
    ],
)
def test_the_level_is_that_of_the_topics_codec(
    overrides: dict[str, str], level: int | None
) -> None:
    assert TopicConfig.resolve(settings(), overrides).compression_level() == level


def test_policies_become_flags() -> None:
    mine = settings()
    both = TopicConfig.resolve(mine, {"cleanup.policy": "compact,delete"}).log_config(mine)
    neither = TopicConfig.resolve(mine, {"cleanup.policy": ""}).log_config(mine)
    assert (both.is_compacted, both.is_deleted) == (True, True)
    assert (neither.is_compacted, neither.is_deleted) == (False, False)
    strict = settings(ottla_record_validation="full")
    assert TopicConfig.resolve(strict, {}).admission_policy(strict).full_validation


def test_a_compacted_log_rolls_before_its_records_must_be_cleaned() -> None:
    mine = settings()
    lag = {"max.compaction.lag.ms": "1000", "min.compaction.lag.ms": "10"}
    compacted = TopicConfig.resolve(mine, {"cleanup.policy": "compact", **lag}).log_config(mine)
    assert (compacted.segment_ms, compacted.compaction_lag_ms_min) == (1000, 10)
    assert TopicConfig.resolve(mine, lag).log_config(mine).segment_ms == LogConfig().segment_ms
    configs = {"delete.retention.ms": "7", "min.cleanable.dirty.ratio": "0.25"}
    other = TopicConfig.resolve(mine, configs).log_config(mine)
    assert (other.delete_retention_ms, other.dirty_ratio_min) == (7, 0.25)
