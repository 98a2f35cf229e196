"""The catalogue as a whole, and through it every table."""

from ottla.metadata.configs.catalogue import (
    BROKER_CONFIGS,
    BROKER_SYNONYMS,
    BROKER_TABLES,
    TOPIC_CONFIGS,
    TOPIC_SYNONYMS,
    is_not_built,
    nearest,
    synonyms_of,
)
from ottla.metadata.configs.definition import Service, as_text

# Of Apache Kafka 4.3.1, those for its own use and those that only a running broker has included.
KAFKA_BROKER_CONFIGS = 362
KAFKA_TOPIC_CONFIGS = 34


def test_every_config_of_kafka_is_here_once() -> None:
    names = [d.name for table in BROKER_TABLES for d in table.DEFINITIONS]
    assert len(names) == len(set(names))
    assert sum(not name.startswith("ottla.") for name in names) == KAFKA_BROKER_CONFIGS
    assert len(TOPIC_CONFIGS) == KAFKA_TOPIC_CONFIGS


def test_every_default_obeys_its_own_bounds_and_prints_as_it_is_written() -> None:
    for definition in (*BROKER_CONFIGS.values(), *TOPIC_CONFIGS.values()):
        assert as_text(definition.default_value()) == definition.default, definition.name


def test_every_documentation_is_one_sentence() -> None:
    for definition in (*BROKER_CONFIGS.values(), *TOPIC_CONFIGS.values()):
        assert definition.documentation[0].isupper(), definition.name
        assert definition.documentation.endswith("."), definition.name
        assert definition.importance in ("high", "medium", "low")


def test_a_topic_config_has_the_type_and_default_of_the_broker_config_behind_it() -> None:
    for name, broker_name in TOPIC_SYNONYMS.items():
        ours, behind = TOPIC_CONFIGS[name], BROKER_CONFIGS[broker_name]
        assert ours.type is behind.type, name
        if len(synonyms_of(broker_name)) == 1:
            assert ours.default == behind.default, name
    for group in BROKER_SYNONYMS:
        assert all(name in BROKER_CONFIGS for name, _ in group)


def test_security_settings_are_never_silently_ignored() -> None:
    # Whatever the name of a security setting starts with, a table must not wave it through.
    prefixes = ("ssl.", "sasl.", "delegation.token.", "authorizer.", "listener.name.x.")
    for name in (*BROKER_CONFIGS, "listener.name.x.ssl.keystore.location", "super.users"):
        if name.startswith(prefixes) or name == "super.users":
            assert is_not_built(name), name
    assert not any(
        d.is_sensitive and d.service is not Service.NOT_BUILT for d in BROKER_CONFIGS.values()
    )


def test_the_nearest_name_is_found_only_where_one_is_near() -> None:
    assert nearest("log.retention.mss", BROKER_CONFIGS) == "log.retention.ms"
    assert nearest("zzz", BROKER_CONFIGS) is None


def test_the_synonyms_of_a_broker_config_are_in_the_order_in_which_they_count() -> None:
    assert synonyms_of("log.retention.hours")[0] == "log.retention.ms"
    assert synonyms_of("log.flush.scheduler.interval.ms") == ("log.flush.scheduler.interval.ms",)
    assert synonyms_of("num.partitions") == ("num.partitions",)
