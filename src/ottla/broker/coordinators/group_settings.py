"""What the broker's settings, and a group's own configs, are to the group coordinator."""

from collections.abc import Mapping
from typing import Protocol

from ottla.broker.settings.settings import Settings
from ottla.groups.settings import ConsumerTimes, GroupSettings, MigrationPolicy
from ottla.metadata.image.cluster import GROUP_RESOURCE
from ottla.metadata.image.image import ClusterImage


def group_settings(settings: Settings) -> GroupSettings:
    return GroupSettings(
        initial_rebalance_delay_ms=settings.group_initial_rebalance_delay_ms,
        session_timeout_ms_min=settings.group_min_session_timeout_ms,
        session_timeout_ms_max=settings.group_max_session_timeout_ms,
        size_max=settings.group_max_size,
        offset_metadata_size_max=settings.offset_metadata_max_bytes,
        offsets_retention_ms=settings.offsets_retention_minutes * 60_000,
        consumer_size_max=settings.group_consumer_max_size,
        consumer_assignors=tuple(settings.group_consumer_assignors),
        migration=MigrationPolicy(settings.group_consumer_migration_policy.lower()),
    )


class Configured(Protocol):
    """Where a group's times come from: the broker's settings, and the group's own configs."""

    @property
    def settings(self) -> Settings: ...
    @property
    def image(self) -> ClusterImage: ...


class GroupTimes:
    """The times of each group, asked for at every heartbeat: configs may change at any time."""

    def __init__(self, configured: Configured) -> None:
        self._configured = configured
        self._settings: Settings | None = None
        self._default = ConsumerTimes()

    def __call__(self, group_id: str) -> ConsumerTimes:
        settings = self._configured.settings
        if settings is not self._settings:
            self._settings = settings
            self._default = ConsumerTimes(
                settings.group_consumer_session_timeout_ms,
                settings.group_consumer_heartbeat_interval_ms,
                settings.group_consumer_assignment_interval_ms,
            )
        overrides = self._configured.image.config_of(GROUP_RESOURCE, group_id)
        return _of_its_own(overrides, self._default, settings) if overrides else self._default


def _of_its_own(
    overrides: Mapping[str, str], default: ConsumerTimes, settings: Settings
) -> ConsumerTimes:
    """The broker's bounds may have become narrower since: then the nearest value counts."""
    session_ms = overrides.get("consumer.session.timeout.ms", default.session_timeout_ms)
    heartbeat_ms = overrides.get("consumer.heartbeat.interval.ms", default.heartbeat_interval_ms)
    interval_ms = overrides.get("consumer.assignment.interval.ms", default.assignment_interval_ms)
    return ConsumerTimes(
        _within(
            session_ms,
            settings.group_consumer_min_session_timeout_ms,
            settings.group_consumer_max_session_timeout_ms,
        ),
        _within(
            heartbeat_ms,
            settings.group_consumer_min_heartbeat_interval_ms,
            settings.group_consumer_max_heartbeat_interval_ms,
        ),
        _within(
            interval_ms,
            settings.group_consumer_min_assignment_interval_ms,
            settings.group_consumer_max_assignment_interval_ms,
        ),
    )


def _within(value: str | int, low: int, high: int) -> int:
    """Only what the group sets itself is bounded; the broker's own value is its owner's affair."""
    return min(max(int(value), low), high) if isinstance(value, str) else value
