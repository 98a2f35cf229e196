from ottla.storage.config import DAY_MS, LogConfig


def test_the_defaults_are_kafkas() -> None:
    config = LogConfig()
    assert config.segment_bytes == 1 << 30
    assert config.segment_ms == config.retention_ms == 7 * DAY_MS
    assert config.retention_bytes == -1
    assert config.segment_index_bytes == 10 << 20
    assert config.index_interval_bytes == 4096
    assert config.file_delete_delay_ms == 60_000
    assert config.is_deleted
    assert not config.is_compacted
