"""The broker's settings as a whole."""

import typing

import pytest

from ottla.broker.settings.endpoints import HostPort
from ottla.broker.settings.properties import parse_properties
from ottla.broker.settings.settings import Settings, SettingsError, zero_configuration
from ottla.metadata.configs.catalogue import BROKER_CONFIGS
from ottla.metadata.configs.definition import ConfigType, Service

# The keys and values of the file that Apache Kafka 4.3 ships as config/server.properties.
KAFKA_SERVER_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,\\
    SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""

# Set through another key of the same meaning, so there is no attribute of this name.
BY_ANOTHER_NAME = {
    "broker.id",
    "log.dir",
    "log.retention.minutes",
    "log.retention.hours",
    "log.roll.hours",
    "log.roll.jitter.hours",
    "security.inter.broker.protocol",
}


def load(**changes: str | None) -> Settings:
    """The zero configuration with some keys changed (underscores for dots) or removed (None)."""
    properties = zero_configuration("data")
    for name, value in changes.items():
        key = name.replace("_", ".")
        properties.pop(key, None)
        if value is not None:
            properties[key] = value
    return Settings.load(properties, host_name=lambda: "here.example")


def refusal(**changes: str | None) -> str:
    with pytest.raises(SettingsError) as caught:
        load(**changes)
    return str(caught.value)


def test_kafkas_own_server_properties_load() -> None:
    properties = {p.key: p.value for p in parse_properties(KAFKA_SERVER_PROPERTIES)}
    settings = Settings.load(properties)
    assert settings.log_dirs == ["/tmp/kraft-combined-logs"]
    assert [str(e) for e in settings.listeners] == ["PLAINTEXT://:9092", "CONTROLLER://:9093"]
    assert [e.host for e in settings.advertised_listeners] == ["localhost", "localhost"]
    assert settings.controller_quorum_bootstrap_servers == [HostPort("localhost", 9093)]
    assert not settings.is_quorum_static
    assert "num.io.threads" in settings.irrelevant
    assert "num.partitions" not in settings.irrelevant


def test_every_served_setting_is_a_typed_attribute() -> None:
    hints = typing.get_type_hints(Settings)
    settings = load()
    plain = {
        ConfigType.BOOLEAN: bool,
        ConfigType.INT: int,
        ConfigType.LONG: int,
        ConfigType.SHORT: int,
        ConfigType.DOUBLE: float,
    }
    served = {n for n, d in BROKER_CONFIGS.items() if d.service is Service.SERVED}
    assert {name.replace(".", "_") for name in served - BY_ANOTHER_NAME} == set(hints)
    for name in served - BY_ANOTHER_NAME - {"node.id"}:
        attribute = name.replace(".", "_")
        kind = plain.get(BROKER_CONFIGS[name].type)
        if kind is not None:
            assert hints[attribute] is kind, name
            assert isinstance(getattr(settings, attribute), kind), name


def test_an_unknown_key_is_refused_with_the_nearest_name() -> None:
    properties = {**zero_configuration("data"), "num.partitons": "1"}
    with pytest.raises(SettingsError) as caught:
        Settings.load(properties, origins={"num.partitons": "server.properties line 3"})
    assert str(caught.value) == (
        "num.partitons (server.properties line 3) is not a setting of Kafka 4.3 or Ottla; "
        "did you mean num.partitions?"
    )
    assert Settings.load(properties, ignore_unknown=True).num_partitions == 1


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ssl.keystore.location", "server.jks"),
        ("ssl.client.auth", "required"),
        ("sasl.enabled.mechanisms", "PLAIN"),
        ("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
        ("super.users", "User:admin"),
        ("listener.name.inside.ssl.keystore.location", "x"),
        ("create.topic.policy.class.name", "com.example.Policy"),
        ("remote.log.storage.system.enable", "true"),
        ("connections.max.reauth.ms", "1000"),
    ],
)
def test_a_setting_that_is_not_built_is_refused_and_never_silently_void(
    key: str, value: str
) -> None:
    for ignore_unknown in (False, True):
        with pytest.raises(SettingsError, match=f"^{key}.*not built"):
            Settings.load({**zero_configuration("data"), key: value}, ignore_unknown)


def test_a_setting_that_is_not_built_may_ask_for_what_holds_anyway() -> None:
    assert load(ssl_client_auth="none", authorizer_class_name="").num_partitions == 1


def test_a_refusal_never_repeats_a_password() -> None:
    assert "hunter2" not in refusal(ssl_keystore_password="hunter2")


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("num_partitions", "0", "at least 1"),
        ("num_partitions", "many", "whole number"),
        ("auto_create_topics_enable", "yes", "true or false"),
        ("log_message_timestamp_type", "Now", "CreateTime, LogAppendTime"),
        ("log_cleanup_policy", "delete,burn", "compact, delete"),
        ("log_cleaner_min_cleanable_ratio", "1.5", "between 0 and 1"),
        ("compression_gzip_level", "0", "-1 or between 1 and 9"),
        ("socket_request_max_bytes", "4294967296", "32 bits"),
        ("log_retention_hours", "0", "-1 or at least 1"),
        ("log_dirs", "a,,b", "must name a directory"),
        ("queued_max_request_bytes", "1000", "socket.request.max.bytes"),
    ],
)
def test_a_bad_value_says_what_is_allowed(key: str, value: str, allowed: str) -> None:
    sentence = refusal(**{key: value})
    assert allowed in sentence
    assert sentence.endswith(".")


def test_retention_takes_the_finest_unit_that_is_set() -> None:
    assert load().log_retention_ms == 7 * 24 * 3_600_000
    assert load(log_retention_hours="2").log_retention_ms == 7_200_000
    assert load(log_retention_hours="2", log_retention_minutes="3").log_retention_ms == 180_000
    assert load(log_retention_minutes="3", log_retention_ms="5").log_retention_ms == 5
    assert load(log_retention_hours="-1").log_retention_ms == -1


def test_the_older_name_of_the_node_id_counts() -> None:
    assert load(node_id=None, broker_id="7").node_id == 7
    assert "must equal node.id" in refusal(broker_id="7")
    assert "node.id is missing" in refusal(node_id=None)


def test_memory_for_requests_has_room_for_the_largest_one() -> None:
    assert load().queued_max_request_bytes == 128 * 1024 * 1024
    large = load(socket_request_max_bytes="300000000")
    assert large.queued_max_request_bytes == 300_000_000


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("session.timeout.ms", "44999", "must be at least group.consumer.min.session.timeout.ms"),
        ("session.timeout.ms", "60001", "must be at most group.consumer.max.session.timeout.ms"),
        ("heartbeat.interval.ms", "15001", "must be at most"),
        ("assignment.interval.ms", "15001", "must be at most"),
        ("assignors", "uniform,cosy", "may only list uniform, range"),
    ],
)
def test_groups_keep_the_bounds_that_are_set_for_them(name: str, value: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        Settings.load(zero_configuration("data") | {f"group.consumer.{name}": value})


def test_a_group_waits_longer_than_for_one_heartbeat() -> None:
    both = {"group.consumer.min.session.timeout.ms": "1", "group.consumer.session.timeout.ms": "9"}
    with pytest.raises(SettingsError, match=r"must be less than group\.consumer\.session"):
        Settings.load(zero_configuration("data") | both)


def test_dynamic_configs_change_what_they_may_and_nothing_else() -> None:
    settings = load(log_retention_ms="1000")
    changed = settings.with_dynamic(
        {"log.retention.ms": "2000", "num.partitions": "9", "message.max.bytes": "x"},
        {"log.segment.bytes": "2000000"},
    )
    assert (changed.log_retention_ms, changed.log_segment_bytes) == (2000, 2_000_000)
    assert changed.num_partitions == 1
    assert changed.message_max_bytes == settings.message_max_bytes
    assert changed.with_dynamic({}, {}).log_retention_ms == 1000
    nearer = changed.with_dynamic({"log.retention.ms": "2000"}, {"log.retention.ms": "3000"})
    assert nearer.log_retention_ms == 3000


def test_dynamic_configs_that_contradict_others_leave_the_last_good_state() -> None:
    changed = load().with_dynamic({"log.retention.ms": "2000"}, {})
    assert changed.with_dynamic({"log.retention.ms": "0"}, {}).log_retention_ms == 2000
