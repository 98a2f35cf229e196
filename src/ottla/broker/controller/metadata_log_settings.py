"""Settings of the metadata log: its directory, segments, snapshots, retention and static voters."""

from dataclasses import dataclass

from ottla.broker.settings.settings import Settings
from ottla.metadata.image.cluster import METADATA_TOPIC
from ottla.model.types import ZERO_UUID, Millis
from ottla.quorum.voters import Address, Voter, Voters
from ottla.storage.config import LogConfig


@dataclass(frozen=True, slots=True)
class MetadataLogSettings:
    log_dir: str  # `metadata.log.dir`, in which the directory of the metadata log is.
    static_voters: Voters | None = None  # `controller.quorum.voters`, with kraft.version 0.
    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: Millis = 7 * 24 * 3600 * 1000
    snapshot_after_bytes: int = 20 * 1024 * 1024
    snapshot_after_ms: Millis = 3600 * 1000
    retention_bytes: int = 100 * 1024 * 1024
    retention_ms: Millis = 7 * 24 * 3600 * 1000

    @property
    def directory(self) -> str:
        return f"{self.log_dir}/{METADATA_TOPIC}-0"

    @property
    def log_config(self) -> LogConfig:
        return LogConfig(
            segment_bytes=self.segment_bytes, segment_ms=self.segment_ms, retention_ms=-1
        )


def metadata_log_settings(settings: Settings) -> MetadataLogSettings:
    return MetadataLogSettings(
        log_dir=settings.metadata_log_dir,
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
