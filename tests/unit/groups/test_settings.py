"""The defaults of groups are Kafka's."""

from ottla.groups.settings import GroupSettings
from ottla.metadata.configs.catalogue import BROKER_CONFIGS


def test_the_defaults_are_those_of_the_settings() -> None:
    defaults = {name: definition.default_value() for name, definition in BROKER_CONFIGS.items()}
    settings = GroupSettings()
    assert settings.initial_rebalance_delay_ms == defaults["group.initial.rebalance.delay.ms"]
    assert settings.session_timeout_ms_min == defaults["group.min.session.timeout.ms"]
    assert settings.session_timeout_ms_max == defaults["group.max.session.timeout.ms"]
    assert settings.size_max == defaults["group.max.size"]
    assert settings.offset_metadata_size_max == defaults["offset.metadata.max.bytes"]
    minutes = defaults["offsets.retention.minutes"]
    assert isinstance(minutes, int)
    assert settings.offsets_retention_ms == minutes * 60_000
