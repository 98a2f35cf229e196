"""A group's own configs count from its next heartbeat on."""

from dataclasses import dataclass

from ottla.broker.coordinators.group_settings import GroupTimes, group_settings
from ottla.broker.settings.settings import Settings, zero_configuration
from ottla.groups.settings import ConsumerTimes, MigrationPolicy
from ottla.metadata.image.image import ClusterImage
from ottla.protocol.messages import consumer_group_heartbeat, incremental_alter_configs
from tests.unit.broker.grouping import QUICK, find
from tests.unit.broker.handlers.test_consumer_group_heartbeat import GROUP, joining
from tests.unit.broker.serving import serving

GROUP_RESOURCE = 32


def alter(**configs: str | None) -> incremental_alter_configs.Request:
    changes = [
        incremental_alter_configs.AlterableConfig(name.replace("_", "."), int(value is None), value)
        for name, value in configs.items()
    ]
    resource = incremental_alter_configs.AlterConfigsResource(GROUP_RESOURCE, GROUP, changes)
    return incremental_alter_configs.Request(resources=[resource])


def test_the_policy_is_read_in_any_case() -> None:
    configured = zero_configuration("data") | {"group.consumer.migration.policy": "Upgrade"}
    assert group_settings(Settings.load(configured)).migration is MigrationPolicy.UPGRADE


@dataclass
class Configured:
    settings: Settings
    image: ClusterImage


def test_what_counts_is_the_groups_own_within_the_bounds_or_else_the_brokers() -> None:
    image = ClusterImage()
    settings = Settings.load(
        zero_configuration("data") | {"group.consumer.max.session.timeout.ms": "50000"}
    )
    configured = Configured(settings, image)
    times = GroupTimes(configured)
    assert times(GROUP) == ConsumerTimes()
    image.configs[GROUP_RESOURCE, GROUP] = {
        "consumer.session.timeout.ms": "60000",
        "consumer.heartbeat.interval.ms": "1",
        "consumer.assignment.interval.ms": "0",
    }
    assert times(GROUP) == ConsumerTimes(50_000, 5_000, 0)
    assert times("another") == ConsumerTimes()
    configured.settings = settings.with_dynamic({"group.consumer.assignment.interval.ms": "7"}, {})
    assert times("another") == ConsumerTimes(assignment_interval_ms=7)


def test_a_heartbeat_tells_the_groups_own_interval() -> None:
    with serving(**QUICK) as world:
        find(world)
        world.topic("t", 2)
        client = world.client()
        assert client.ask(joining(subscribed_topic_names=["t"])).heartbeat_interval_ms == 5000
        assert client.ask(alter(consumer_heartbeat_interval_ms="7000")).responses[0].error_code == 0
        beat = consumer_group_heartbeat.Request(GROUP, "m", 1, topic_partitions=[])
        assert client.ask(beat).heartbeat_interval_ms == 7000
        assert client.ask(alter(consumer_heartbeat_interval_ms="70000")).responses[0].error_code
        client.ask(alter(consumer_heartbeat_interval_ms=None))
        assert client.ask(beat).heartbeat_interval_ms == 5000
