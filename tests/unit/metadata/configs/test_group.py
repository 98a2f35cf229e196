"""Configs of single groups: bounds, precedence, description."""

import pytest

from ottla.metadata.configs.description import Layers, Source
from ottla.metadata.configs.group import (
    GROUP_CONFIGS,
    check_group_configs,
    describe_group,
)
from ottla.model.errors import ErrorCode, Refusal

SESSION, BEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


def test_group_configs_within_the_brokers_bounds_are_accepted() -> None:
    check_group_configs({}, {})
    check_group_configs(
        {SESSION: "60000", BEAT: "15000", "share.isolation.level": "read_committed"}, {}
    )
    check_group_configs({SESSION: "1000", BEAT: "10"}, {
        "group.consumer.min.session.timeout.ms": "1000",
        "group.consumer.min.heartbeat.interval.ms": "10",
    })  # fmt: skip
    check_group_configs({"share.auto.offset.reset": "by_duration:PT1H"}, {})


@pytest.mark.parametrize(
    ("configs", "why"),
    [
        ({"cosiness": "1"}, "Unknown group config name: cosiness"),
        ({SESSION: "soon"}, "Invalid value soon"),
        ({SESSION: "0"}, "Invalid value 0"),
        ({SESSION: "44999"}, "greater than or equal to group.consumer.min.session.timeout.ms"),
        ({SESSION: "60001"}, "less than or equal to group.consumer.max.session.timeout.ms"),
        ({BEAT: "15001"}, "less than or equal to group.consumer.max.heartbeat.interval.ms"),
        ({"streams.num.standby.replicas": "3"}, "group.streams.max.standby.replicas"),
        ({"share.auto.offset.reset": "sometimes"}, "must be earliest, latest or"),
        ({"share.isolation.level": "cosy"}, "must be one of"),
    ],
)
def test_invalid_group_configs_are_refused_with_the_reason(
    configs: dict[str, str], why: str
) -> None:
    with pytest.raises(Refusal, match=why) as refused:
        check_group_configs(configs, {})
    assert refused.value.code is ErrorCode.INVALID_CONFIG


def test_a_session_is_longer_than_its_heartbeats() -> None:
    bounds = {
        "group.consumer.min.session.timeout.ms": "1000",
        "group.consumer.heartbeat.interval.ms": "6000",
    }
    with pytest.raises(Refusal, match=r"must be greater than consumer\.heartbeat\.interval\.ms"):
        check_group_configs({SESSION: "6000"}, bounds)


def test_all_configs_are_described_with_where_they_come_from() -> None:
    layers = Layers({}, {}, {"group.consumer.heartbeat.interval.ms": "6000"})
    found = {one.name: one for one in describe_group(layers, {SESSION: "50000"})}
    assert set(found) == set(GROUP_CONFIGS)
    own, broker, default = found[SESSION], found[BEAT], found["share.isolation.level"]
    assert (own.value, own.config_source) == ("50000", Source.GROUP)
    assert [one.name for one in own.synonyms] == [SESSION, f"group.{SESSION}"]
    assert (broker.value, broker.config_source) == ("6000", Source.STATIC)
    assert (default.value, default.config_source) == ("read_uncommitted", Source.DEFAULT)
