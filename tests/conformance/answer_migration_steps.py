"""Steps of groups that change their kind, with classic and new members side by side, and of the
configs that a group may have of its own."""

import time
from typing import Any

from ottla.protocol.consumer_protocol import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    encode_versioned,
)
from ottla.protocol.messages import (
    consumer_group_describe,
    consumer_group_heartbeat,
    describe_configs,
    describe_groups,
    heartbeat,
    incremental_alter_configs,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    offset_commit,
    offset_fetch,
    sync_group,
)
from tests.conformance.answer_step import Steps
from tests.conformance.answer_world import World

# ruff: noqa: ANN401  Requests are of many classes.

STEPS = Steps()
step = STEPS.add
TOPIC, GROUP, STATIC = "plain-2", "mixed", "mixed-static"
ONE, SUBSCRIBED = range(5, 6), encode_versioned(ConsumerProtocolSubscription([TOPIC]), 1)
GROUP_RESOURCE = 32
INTERVAL_SECONDS = 1.1  # Apache Kafka makes a target at most once in a second.


def joining(group: str, member: str = "", instance: str | None = None, **fields: Any) -> Any:
    protocols = [join_group.JoinGroupRequestProtocol("range", SUBSCRIBED)]
    request = join_group.Request(group, 30_000, 30_000, member, instance, "consumer", protocols)
    for name, value in fields.items():
        setattr(request, name, value)
    return request


def syncing(world: World, group: str, joined: str, *, is_leader: bool = False) -> Any:
    answer = world.answers[joined, 5]
    parts = [AssignmentTopicPartition(TOPIC, list(range(6)))]
    given = encode_versioned(ConsumerProtocolAssignment(parts), 1)
    assignments = [sync_group.SyncGroupRequestAssignment(answer.member_id, given)]
    instance = "one" if group == STATIC else None
    return sync_group.Request(
        group, answer.generation_id, answer.member_id, instance, "consumer", "range",
        assignments if is_leader else [],
    )  # fmt: skip


def old_member(world: World) -> str:
    member: str = world.answers["mixed: a classic member is given its id", 5].member_id
    return member


def beating(group: str, member: str, epoch: int = 0, **fields: Any) -> Any:
    request = consumer_group_heartbeat.Request(group, member, epoch)
    if epoch == 0:
        request.rebalance_timeout_ms = 30_000
        request.subscribed_topic_names, request.topic_partitions = [TOPIC], []
    for name, value in fields.items():
        setattr(request, name, value)
    return request


@step("mixed: a classic member is given its id", ONE)
def _(_: World, __: int) -> Any:
    return joining(GROUP)


@step("mixed: a classic member joins", ONE)
def _(world: World, _: int) -> Any:
    return joining(GROUP, old_member(world))


@step("mixed: a classic member has all", ONE)
def _(world: World, _: int) -> Any:
    return syncing(world, GROUP, "mixed: a classic member joins", is_leader=True)


@step("mixed: a new member upgrades the group", range(1, 2))
def _(_: World, __: int) -> Any:
    return beating(GROUP, "new")


def generation(world: World) -> int:
    number: int = world.answers["mixed: a classic member joins", 5].generation_id
    return number


@step("mixed: the classic member has to rejoin", range(4, 5))
def _(world: World, _: int) -> Any:
    return heartbeat.Request(GROUP, generation(world), old_member(world))


@step("mixed: its generation is checked", range(4, 5))
def _(world: World, _: int) -> Any:
    return heartbeat.Request(GROUP, 77, old_member(world))


@step("mixed: a new member sends no classic heartbeat", range(4, 5))
def _(_: World, __: int) -> Any:
    return heartbeat.Request(GROUP, 1, "new")


@step("mixed: no assignment for an old generation", ONE)
def _(world: World, _: int) -> Any:
    return syncing(world, GROUP, "mixed: a classic member joins")


def committing(world: World, epoch: int, member: str) -> Any:
    part = offset_commit.OffsetCommitRequestPartition(0, 5, -1, "")
    topics = [offset_commit.OffsetCommitRequestTopic(TOPIC, world.topic_id(TOPIC), [part])]
    return offset_commit.Request(GROUP, epoch, member, topics=topics)


@step("mixed: the classic member commits", range(8, 11))
def _(world: World, _: int) -> Any:
    return committing(world, generation(world), old_member(world))


@step("mixed: the classic member commits with another generation", range(8, 11))
def _(world: World, _: int) -> Any:
    return committing(world, 77, old_member(world))


@step("mixed: the new member commits", range(8, 10))
def _(world: World, _: int) -> Any:
    return committing(world, 2, "new")


@step("mixed: offsets for members of their epoch", range(9, 10))
def _(world: World, _: int) -> Any:
    asked = offset_fetch.OffsetFetchRequestGroup
    return offset_fetch.Request(
        groups=[
            asked(GROUP, old_member(world), generation(world), None),
            asked(GROUP, old_member(world), 77, None),
            asked(GROUP, "new", 77, None),
            asked(GROUP, "nobody", 1, None),
            asked(GROUP, None, -1, None),
        ]
    )


@step("mixed: described", range(1, 2))
def _(_: World, __: int) -> Any:
    return consumer_group_describe.Request([GROUP])


@step("mixed: not described as a classic group", range(6, 7))
def _(_: World, __: int) -> Any:
    return describe_groups.Request([GROUP])


@step("mixed: another classic member is given its id", ONE)
def _(_: World, __: int) -> Any:
    return joining(GROUP)


@step("mixed: a member of another kind cannot join", ONE)
def _(_: World, __: int) -> Any:
    return joining(GROUP, protocol_type="connect")


@step("mixed: a member with another protocol cannot join", ONE)
def _(_: World, __: int) -> Any:
    return joining(GROUP, protocols=[join_group.JoinGroupRequestProtocol("cosy", SUBSCRIBED)])


@step("mixed: the classic member rejoins", ONE)
def _(world: World, _: int) -> Any:
    return joining(GROUP, old_member(world))


@step("mixed: the classic member has a part", ONE)
def _(world: World, _: int) -> Any:
    return syncing(world, GROUP, "mixed: the classic member rejoins")


@step("mixed: the new member has the rest", range(1, 2))
def _(world: World, _: int) -> Any:
    epoch = world.answers["mixed: a new member upgrades the group", 1].member_epoch
    return beating(GROUP, "new", epoch, topic_partitions=[])


@step("mixed: listed", ONE)
def _(_: World, __: int) -> Any:
    return list_groups.Request(["stable"], ["consumer"])


@step("mixed: a member that is not there leaves", range(5, 6))
def _(_: World, __: int) -> Any:
    return leave_group.Request(GROUP, members=[leave_group.MemberIdentity("nobody")])


@step("mixed: the new member leaves", range(1, 2))
def _(_: World, __: int) -> Any:
    return beating(GROUP, "new", -1)


@step("mixed: a classic group again", range(6, 7))
def _(_: World, __: int) -> Any:
    return describe_groups.Request([GROUP])


@step("mixed: the classic member has to rejoin again", range(4, 5))
def _(world: World, _: int) -> Any:
    joined = world.answers["mixed: the classic member rejoins", 5]
    return heartbeat.Request(GROUP, joined.generation_id, joined.member_id)


@step("mixed: the classic member leads", ONE)
def _(world: World, _: int) -> Any:
    return joining(GROUP, old_member(world))


@step("static: a classic one joins", ONE)
def _(_: World, __: int) -> Any:
    return joining(STATIC, instance="one")


@step("static: a classic one has all", ONE)
def _(world: World, _: int) -> Any:
    return syncing(world, STATIC, "static: a classic one joins", is_leader=True)


@step("static: a new one takes its place", range(1, 2))
def _(_: World, __: int) -> Any:
    return beating(STATIC, "new", instance_id="one")


@step("static: the classic one is out", range(4, 5))
def _(world: World, _: int) -> Any:
    joined = world.answers["static: a classic one joins", 5]
    return heartbeat.Request(STATIC, joined.generation_id, joined.member_id, "one")


@step("static: described", range(1, 2))
def _(_: World, __: int) -> Any:
    return consumer_group_describe.Request([STATIC])


@step("static: a classic one takes its place", ONE)
def _(_: World, __: int) -> Any:
    time.sleep(INTERVAL_SECONDS)
    return joining(STATIC, instance="one")


@step("static: a classic group again", range(6, 7))
def _(_: World, __: int) -> Any:
    return describe_groups.Request([STATIC])


@step("static: it has what the new one had", ONE)
def _(world: World, _: int) -> Any:
    return syncing(world, STATIC, "static: a classic one takes its place")


@step("static: the new one is out", range(1, 2))
def _(world: World, _: int) -> Any:
    epoch = world.answers["static: a new one takes its place", 1].member_epoch
    return beating(STATIC, "new", epoch, instance_id="one")


INTERVAL = "interval"


@step("interval: the first member has all at once", range(1, 2))
def _(_: World, __: int) -> Any:
    return beating(INTERVAL, "first", rack_id="a")


@step("interval: the second has to wait for a target", range(1, 2))
def _(_: World, __: int) -> Any:
    return beating(INTERVAL, "second", rack_id="b")


@step("interval: without a target", range(1, 2))
def _(_: World, __: int) -> Any:
    return consumer_group_describe.Request([INTERVAL])


@step("interval: the second has a target", range(1, 2))
def _(world: World, _: int) -> Any:
    time.sleep(INTERVAL_SECONDS)
    epoch = world.answers["interval: the second has to wait for a target", 1].member_epoch
    return beating(INTERVAL, "second", epoch)


@step("interval: the first has to give up", range(1, 2))
def _(world: World, _: int) -> Any:
    epoch = world.answers["interval: the first member has all at once", 1].member_epoch
    owned = consumer_group_heartbeat.TopicPartitions(world.topic_id(TOPIC), list(range(6)))
    return beating(INTERVAL, "first", epoch, topic_partitions=[owned])


@step("interval: in the end", range(1, 2))
def _(_: World, __: int) -> Any:
    return consumer_group_describe.Request([INTERVAL])


def altering(group: str, name: str, value: str | None, operation: int = 0) -> Any:
    config = incremental_alter_configs.AlterableConfig(name, operation, value)
    resource = incremental_alter_configs.AlterConfigsResource(GROUP_RESOURCE, group, [config])
    return incremental_alter_configs.Request(resources=[resource])


ALTERED = {
    "in its bounds": ("consumer.session.timeout.ms", "50000"),
    "below its bounds": ("consumer.session.timeout.ms", "1000"),
    "above its bounds": ("consumer.heartbeat.interval.ms", "15001"),
    "below zero": ("consumer.assignment.interval.ms", "-1"),
    "that is no number": ("consumer.session.timeout.ms", "soon"),
    "that nobody knows": ("consumer.cosiness", "1"),
    "of share groups": ("share.auto.offset.reset", "earliest"),
    "of share groups, wrongly": ("share.auto.offset.reset", "sometimes"),
    "of streams groups": ("streams.num.standby.replicas", "9"),
}
for about, altered in ALTERED.items():

    @step(f"IncrementalAlterConfigs of a group: one {about}", range(1, 2))
    def _(_: World, __: int, altered: tuple[str, str] = altered) -> Any:
        return altering(GROUP, *altered)


@step("IncrementalAlterConfigs of all groups", range(1, 2))
def _(_: World, __: int) -> Any:
    return altering("", "consumer.session.timeout.ms", "50000")


@step("IncrementalAlterConfigs of a group: an addition", range(1, 2))
def _(_: World, __: int) -> Any:
    return altering(GROUP, "consumer.session.timeout.ms", "50000", 2)


@step("DescribeConfigs of groups", range(4, 5))
def _(_: World, __: int) -> Any:
    time.sleep(0.5)  # Apache Kafka's broker hears of them a moment later.
    resource = describe_configs.DescribeConfigsResource
    return describe_configs.Request(
        [
            resource(GROUP_RESOURCE, GROUP, None),
            resource(GROUP_RESOURCE, "nobody", ["consumer.heartbeat.interval.ms"]),
            resource(GROUP_RESOURCE, "", None),
        ],
        include_synonyms=True,
    )


@step("ListConfigResources of client metrics", range(2))
def _(_: World, version: int) -> Any:
    return list_config_resources.Request([16] if version >= 1 else [])


@step("ListConfigResources of groups and brokers", range(1, 2))
def _(_: World, __: int) -> Any:
    return list_config_resources.Request([GROUP_RESOURCE, 4, 8])


@step("ListConfigResources of a kind that does not exist", range(1, 2))
def _(_: World, __: int) -> Any:
    return list_config_resources.Request([GROUP_RESOURCE, 1])


@step("IncrementalAlterConfigs of a group: a removal", range(1, 2))
def _(_: World, __: int) -> Any:
    return altering(GROUP, "consumer.session.timeout.ms", None, 1)


@step("ListConfigResources of groups", range(1, 2))
def _(_: World, __: int) -> Any:
    time.sleep(0.5)
    return list_config_resources.Request([GROUP_RESOURCE])
