"""The broker's settings: Kafka's keys, checked, typed, and with the configs changed at run time.

`Settings.load` takes the text of each key and refuses, in one sentence, what is unknown, wrong or
not built. Attributes bear Kafka's names with underscores: `settings.num_partitions`. Where several
keys set one thing (`log.retention.ms`, `.minutes`, `.hours`) the attribute holds what counts.
A Settings never changes: `with_dynamic` makes a new one.
"""

import socket
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from ottla.broker.settings.endpoints import Endpoint, HostPort, Voter
from ottla.broker.settings.error import SettingsError, refuse
from ottla.broker.settings.listeners import Addresses, resolve_addresses
from ottla.metadata.configs.catalogue import (
    BROKER_CONFIGS,
    BROKER_SYNONYMS,
    is_not_built,
    nearest,
)
from ottla.metadata.configs.definition import (
    ConfigValueError,
    Definition,
    Service,
    Update,
    Value,
    as_text,
)
from ottla.model.types import NodeId

__all__ = ["Settings", "SettingsError", "zero_configuration"]

NO_ORIGINS: Final[Mapping[str, str]] = MappingProxyType({})


class Settings:
    """Every served setting, typed; `static` and the dynamic maps hold the texts they came from."""

    # Who and where this node is.
    node_id: NodeId
    broker_rack: str | None
    process_roles: list[str]
    listeners: list[Endpoint]
    advertised_listeners: list[Endpoint]
    listener_security_protocol_map: dict[str, str]
    inter_broker_listener_name: str
    controller_listener_names: list[str]
    controller_quorum_voters: list[Voter]
    controller_quorum_bootstrap_servers: list[HostPort]
    broker_heartbeat_interval_ms: int
    broker_session_timeout_ms: int
    controller_quorum_election_backoff_max_ms: int
    controller_quorum_election_timeout_ms: int
    controller_quorum_fetch_max_bytes: int
    controller_quorum_fetch_snapshot_max_bytes: int
    controller_quorum_fetch_timeout_ms: int
    controller_quorum_request_timeout_ms: int
    controller_quorum_retry_backoff_ms: int
    log_dirs: list[str]
    metadata_log_dir: str
    # Connections and requests.
    connections_max_idle_ms: int
    fetch_max_bytes: int
    max_connections: int
    max_connections_per_ip: int
    max_connections_per_ip_overrides: dict[str, int]
    max_incremental_fetch_session_cache_slots: int
    max_request_partition_size_limit: int
    queued_max_request_bytes: int
    socket_listen_backlog_size: int
    socket_receive_buffer_bytes: int
    socket_request_max_bytes: int
    socket_send_buffer_bytes: int
    # Topics and their defaults.
    auto_create_topics_enable: bool
    compression_gzip_level: int
    compression_lz4_level: int
    compression_type: str
    compression_zstd_level: int
    default_replication_factor: int
    delete_topic_enable: bool
    message_max_bytes: int
    min_insync_replicas: int
    num_partitions: int
    unclean_leader_election_enable: bool
    # Logs.
    log_cleaner_backoff_ms: int
    log_cleaner_dedupe_buffer_size: int
    log_cleaner_delete_retention_ms: int
    log_cleaner_enable: bool
    log_cleaner_io_buffer_load_factor: float
    log_cleaner_io_max_bytes_per_second: float
    log_cleaner_max_compaction_lag_ms: int
    log_cleaner_min_cleanable_ratio: float
    log_cleaner_min_compaction_lag_ms: int
    log_cleanup_policy: list[str]
    log_flush_interval_messages: int
    log_flush_interval_ms: int
    log_flush_offset_checkpoint_interval_ms: int
    log_flush_scheduler_interval_ms: int
    log_flush_start_offset_checkpoint_interval_ms: int
    log_index_interval_bytes: int
    log_index_size_max_bytes: int
    log_initial_task_delay_ms: int
    log_message_timestamp_after_max_ms: int
    log_message_timestamp_before_max_ms: int
    log_message_timestamp_type: str
    log_retention_bytes: int
    log_retention_check_interval_ms: int
    log_retention_ms: int
    log_roll_jitter_ms: int
    log_roll_ms: int
    log_segment_bytes: int
    log_segment_delete_delay_ms: int
    producer_id_expiration_check_interval_ms: int
    producer_id_expiration_ms: int
    # Replicas.
    auto_leader_rebalance_enable: bool
    follower_replication_throttled_rate: int
    leader_imbalance_check_interval_seconds: int
    leader_replication_throttled_rate: int
    ottla_drained: bool
    ottla_rebalance_enable: bool
    ottla_rebalance_interval_ms: int
    ottla_rebalance_lost_after_ms: int
    ottla_rebalance_moves_max: int
    replica_fetch_backoff_ms: int
    replica_fetch_max_bytes: int
    replica_fetch_min_bytes: int
    replica_fetch_response_max_bytes: int
    replica_fetch_wait_max_ms: int
    replica_high_watermark_checkpoint_interval_ms: int
    replica_lag_time_max_ms: int
    replica_selector_class: str | None
    replication_quota_window_num: int
    replication_quota_window_size_seconds: int
    replica_socket_timeout_ms: int
    unclean_leader_election_interval_ms: int
    # Groups and their offsets.
    group_consumer_assignment_interval_ms: int
    group_consumer_assignors: list[str]
    group_consumer_heartbeat_interval_ms: int
    group_consumer_max_assignment_interval_ms: int
    group_consumer_max_heartbeat_interval_ms: int
    group_consumer_max_session_timeout_ms: int
    group_consumer_max_size: int
    group_consumer_migration_policy: str
    group_consumer_min_assignment_interval_ms: int
    group_consumer_min_heartbeat_interval_ms: int
    group_consumer_min_session_timeout_ms: int
    group_consumer_session_timeout_ms: int
    group_initial_rebalance_delay_ms: int
    group_max_session_timeout_ms: int
    group_max_size: int
    group_min_session_timeout_ms: int
    offset_metadata_max_bytes: int
    offsets_commit_timeout_ms: int
    offsets_retention_check_interval_ms: int
    offsets_retention_minutes: int
    offsets_topic_num_partitions: int
    offsets_topic_replication_factor: int
    offsets_topic_segment_bytes: int
    # The metadata log.
    metadata_log_max_record_bytes_between_snapshots: int
    metadata_log_max_snapshot_interval_ms: int
    metadata_log_segment_bytes: int
    metadata_log_segment_ms: int
    metadata_max_retention_bytes: int
    metadata_max_retention_ms: int
    # Ottla's own.
    ottla_disk_reserve_bytes: int
    ottla_log_format: str
    ottla_log_level: str
    ottla_metrics_listener: HostPort | None
    ottla_record_decompressed_bytes_max: int
    ottla_record_validation: str

    def __init__(
        self,
        static: Mapping[str, str],
        cluster_default: Mapping[str, str],
        this_broker: Mapping[str, str],
        origins: Mapping[str, str],
        addresses: Addresses | None,
        host_name: Callable[[], str],
    ) -> None:
        self.static: Final = dict(static)
        self.cluster_default: Final = dict(cluster_default)
        self.this_broker: Final = dict(this_broker)
        self.irrelevant: Final = sorted(
            key
            for key in self.static
            if key in BROKER_CONFIGS and BROKER_CONFIGS[key].service is Service.IRRELEVANT
        )
        self._origins: Final = origins
        texts = {**self.static, **self.cluster_default, **self.this_broker}
        values = {name: _parse(name, texts, origins) for name in BROKER_CONFIGS}
        for name, value in values.items():
            if BROKER_CONFIGS[name].service is Service.SERVED:
                setattr(self, _attribute(name), value)
        self._resolve_synonyms(values)
        self._check_together()
        # Addresses are fixed once resolved: no dynamic config moves a listener.
        self._addresses: Final = addresses or resolve_addresses(values, origins, host_name)
        for field, address in self._addresses.items():
            setattr(self, field, address)

    @classmethod
    def load(
        cls,
        properties: Mapping[str, str],
        ignore_unknown: bool = False,
        *,
        origins: Mapping[str, str] = NO_ORIGINS,
        host_name: Callable[[], str] = socket.getfqdn,
    ) -> "Settings":
        """Check everything; `origins` says where each key was set, for the errors."""
        known = {}
        for key, value in properties.items():
            if key in BROKER_CONFIGS or is_not_built(key):
                known[key] = value
            elif not ignore_unknown:
                guess = nearest(key, BROKER_CONFIGS)
                meant = f"did you mean {guess}?" if guess else "no setting has a name like it."
                refuse(key, None, f"is not a setting of Kafka 4.3 or Ottla; {meant}", origins)
        for key, value in known.items():
            if is_not_built(key) and not _asks_for_the_default(key, value):
                shown = None if key not in BROKER_CONFIGS else value
                shown = None if shown and BROKER_CONFIGS[key].is_sensitive else shown
                refuse(key, shown, "is known but not built yet; remove it to start", origins)
        return cls(known, {}, {}, origins, None, host_name)

    def with_dynamic(
        self, cluster_default: Mapping[str, str], this_broker: Mapping[str, str]
    ) -> "Settings":
        """These settings with the configs changed at run time; what cannot hold is left out."""
        defaults = _acceptable(cluster_default, (Update.CLUSTER_WIDE,))
        mine = _acceptable(this_broker, (Update.CLUSTER_WIDE, Update.PER_BROKER))
        args = (self._origins, self._addresses, socket.getfqdn)
        try:
            return Settings(self.static, defaults, mine, *args)
        except SettingsError:
            # Each is fine alone but not beside the others: the last good state stays.
            return Settings(self.static, self.cluster_default, self.this_broker, *args)

    @property
    def client_listeners(self) -> list[Endpoint]:
        return [e for e in self.listeners if e.name not in self.controller_listener_names]

    @property
    def controller_listeners(self) -> list[Endpoint]:
        return [e for e in self.listeners if e.name in self.controller_listener_names]

    @property
    def is_broker(self) -> bool:
        return "broker" in self.process_roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.process_roles

    @property
    def is_quorum_static(self) -> bool:
        """Whether the voters are fixed by a setting, and not by records of the metadata log."""
        return bool(self.controller_quorum_voters)

    def _resolve_synonyms(self, values: Mapping[str, Value]) -> None:
        for group in BROKER_SYNONYMS:
            for name, factor in group:
                value = values[name]
                if value is not None:
                    assert isinstance(value, int), "all of these are times"
                    resolved = value if value < 0 else value * factor
                    setattr(self, _attribute(group[0][0]), resolved)
                    break

    def _check_together(self) -> None:
        if self.log_retention_ms == 0:
            refuse("log.retention.ms", "0", "must be -1 or at least 1", self._origins)
        if self.log_roll_ms < 1:
            refuse("log.roll.ms", str(self.log_roll_ms), "must be at least 1", self._origins)
        queued, request = self.queued_max_request_bytes, self.socket_request_max_bytes
        if "queued.max.request.bytes" not in self.static:
            # Our default must never stand in the way of a request that the user allows.
            self.queued_max_request_bytes = max(queued, request)
        elif 0 < queued < request:
            least = f"must be -1 or at least socket.request.max.bytes, which is {request}"
            refuse("queued.max.request.bytes", str(queued), least, self._origins)
        self._check_groups()

    def _check_groups(self) -> None:
        """As Kafka does: what a group has unless it says otherwise keeps the bounds for that."""
        for rest in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"):
            low, high = f"group.consumer.min.{rest}", f"group.consumer.max.{rest}"
            name = f"group.consumer.{rest}"
            value: int = getattr(self, _attribute(name))
            if value < getattr(self, _attribute(low)):
                refuse(name, str(value), f"must be at least {low}", self._origins)
            if value > getattr(self, _attribute(high)):
                refuse(name, str(value), f"must be at most {high}", self._origins)
        heartbeat_ms = self.group_consumer_heartbeat_interval_ms
        if heartbeat_ms >= self.group_consumer_session_timeout_ms:
            name = "group.consumer.heartbeat.interval.ms"
            what = "must be less than group.consumer.session.timeout.ms"
            refuse(name, str(heartbeat_ms), what, self._origins)


def zero_configuration(
    data: str, *, host: str = "127.0.0.1", port: int = 9092, controller_port: int | None = None
) -> dict[str, str]:
    """What `ottla up` runs with: one combined node on one machine."""
    beside = controller_port if controller_port is not None else (port + 1 if port else 0)
    shown = f"[{host}]" if ":" in host else host
    loopback = "[::1]" if ":" in host else "127.0.0.1"
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listeners": f"PLAINTEXT://{shown}:{port},CONTROLLER://{loopback}:{beside}",
        "log.dirs": data,
        # As in the file that Kafka comes with: one developer's group need not wait for others.
        "group.initial.rebalance.delay.ms": "0",
    }


def _attribute(name: str) -> str:
    return name.replace(".", "_")


def _parse(name: str, texts: Mapping[str, str], origins: Mapping[str, str]) -> Any:  # noqa: ANN401
    definition = BROKER_CONFIGS[name]
    text = texts.get(name)
    if text is None:
        return definition.default_value()
    try:
        return definition.parse(text)
    except ConfigValueError as error:
        refuse(name, None if definition.is_sensitive else text, str(error), origins)


def _asks_for_the_default(name: str, text: str) -> bool:
    definition = BROKER_CONFIGS.get(name)
    if definition is None:
        return False
    try:
        return as_text(definition.parse(text)) == as_text(definition.default_value())
    except ConfigValueError:
        return False


def _acceptable(configs: Mapping[str, str], updates: Iterable[Update]) -> dict[str, str]:
    return {
        name: value
        for name, value in configs.items()
        if (definition := BROKER_CONFIGS.get(name)) is not None
        and definition.update in updates
        and _is_valid(definition, value)
    }


def _is_valid(definition: Definition, value: str) -> bool:
    try:
        definition.parse(value)
    except ConfigValueError:
        return False
    return True
