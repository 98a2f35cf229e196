"""DescribeConfigs answers as Apache Kafka 4.3.1 does."""

from ottla.metadata.configs.description import (
    Layers,
    Source,
    describe_broker,
    describe_cluster_default,
    describe_topic,
    topic_default,
)
from ottla.protocol.messages.describe_configs import DescribeConfigsResourceResult

LAYERS = Layers(
    this_broker={"log.segment.bytes": "3000000"},
    cluster_default={"min.insync.replicas": "1", "log.segment.bytes": "2000000"},
    static={"log.retention.minutes": "1", "listeners": "PLAINTEXT://:1", "custom.key": "x"},
)


def topic(overrides: dict[str, str], layers: Layers = LAYERS) -> dict[str, object]:
    return {config.name: config for config in describe_topic(layers, overrides)}


def synonyms(config: object) -> list[tuple[str, str | None, int]]:
    assert isinstance(config, DescribeConfigsResourceResult)
    return [(s.name, s.value, s.source) for s in config.synonyms]


def test_a_topic_shows_its_own_value_above_those_it_hides() -> None:
    config = topic({"segment.bytes": "4000000"})["segment.bytes"]
    assert isinstance(config, DescribeConfigsResourceResult)
    assert (config.value, config.config_source) == ("4000000", Source.TOPIC)
    assert synonyms(config) == [
        ("segment.bytes", "4000000", Source.TOPIC),
        ("log.segment.bytes", "3000000", Source.BROKER),
        ("log.segment.bytes", "2000000", Source.CLUSTER_DEFAULT),
        ("log.segment.bytes", "1073741824", Source.DEFAULT),
    ]


def test_a_default_in_other_units_counts_but_is_no_synonym() -> None:
    config = topic({})["retention.ms"]
    assert isinstance(config, DescribeConfigsResourceResult)
    assert (config.value, config.config_source) == ("60000", Source.DEFAULT)
    assert synonyms(config) == []
    assert topic_default(Layers({}, {}, {"log.retention.hours": "-1"}), "retention.ms") == "-1"


def test_internal_configs_show_only_where_they_are_set() -> None:
    assert "internal.segment.bytes" not in topic({})
    assert "internal.segment.bytes" in topic({"internal.segment.bytes": "5"})
    assert len(topic({})) == 33


def test_a_broker_shows_everything_it_has() -> None:
    configs = {config.name: config for config in describe_broker(LAYERS)}
    assert configs["log.segment.bytes"].value == "3000000"
    assert not configs["log.segment.bytes"].read_only
    assert configs["num.partitions"].read_only
    assert configs["num.partitions"].config_source == Source.DEFAULT
    assert configs["listeners"].config_source == Source.STATIC
    assert configs["ssl.keystore.password"].is_sensitive
    assert "server.max.startup.time.ms" not in configs


def test_unknown_configs_are_sensitive() -> None:
    configs = {config.name: config for config in describe_broker(LAYERS)}
    unknown = configs["custom.key"]
    assert (unknown.value, unknown.is_sensitive, unknown.config_type) == (None, True, 0)
    assert synonyms(unknown) == [("custom.key", None, Source.STATIC)]


def test_cluster_default_shows_only_configs_set_there() -> None:
    configs = {config.name: config for config in describe_cluster_default(LAYERS)}
    assert set(configs) == {"min.insync.replicas", "log.segment.bytes"}
    assert configs["log.segment.bytes"].value == "2000000"
    assert synonyms(configs["min.insync.replicas"]) == [
        ("min.insync.replicas", "1", Source.CLUSTER_DEFAULT)
    ]
