"""What the quorum driver has to know of the broker's settings."""

from ottla.broker.metadata_log import MetadataLogSettings
from ottla.broker.settings import Settings
from ottla.metadata.decisions import ControllerSettings
from ottla.model.types import ZERO_UUID
from ottla.quorum.voters import Address, Voter, Voters


def controller_settings(settings: Settings) -> ControllerSettings:
    return ControllerSettings(
        node_id=settings.node_id,
        partitions_default=settings.num_partitions,
        replication_factor_default=settings.default_replication_factor,
        broker_configs=settings.static,
    )


def metadata_log_settings(settings: Settings) -> MetadataLogSettings:
    return MetadataLogSettings(
        directory=settings.metadata_log_dir,
        static_voters=_static_voters(settings),
        segment_bytes=settings.metadata_log_segment_bytes,
        segment_ms=settings.metadata_log_segment_ms,
        snapshot_after_bytes=settings.metadata_log_max_record_bytes_between_snapshots,
        snapshot_after_ms=settings.metadata_log_max_snapshot_interval_ms,
        retention_bytes=settings.metadata_max_retention_bytes,
        retention_ms=settings.metadata_max_retention_ms,
    )


def _static_voters(settings: Settings) -> Voters | None:
    if not settings.is_quorum_static:
        return None
    listener = settings.controller_listener_names[0]
    return Voters.of(
        Voter(voter.node_id, ZERO_UUID, {listener: Address(voter.host, voter.port)})
        for voter in settings.controller_quorum_voters
    )
