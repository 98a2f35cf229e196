"""Steps about groups: found, joined, committed to, described, left and deleted."""

import time
from typing import Any

from ottla.protocol.consumer_protocol import ConsumerProtocolSubscription, encode_versioned
from ottla.protocol.messages import (
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from tests.conformance.answer_step import Steps
from tests.conformance.answer_world import NO_SUCH_ID, World

# ruff: noqa: ANN401  Requests are of many classes.

STEPS = Steps()
step = STEPS.add
TOPIC = "plain-2"
SUBSCRIPTION = encode_versioned(ConsumerProtocolSubscription([TOPIC]), 1)
JOIN, SYNC, COMMIT, FETCH = range(10), range(6), range(2, 11), range(1, 11)
KNOWN_ID_SINCE, IDS_SINCE, GROUPS_SINCE = 4, 10, 8


def find_one(world: World) -> Any:
    """Apache Kafka makes the topic of groups after the first asking."""
    request = find_coordinator.Request(key="g")
    for _ in range(100):
        answer = world.ask(request, 0)
        if answer.error_code == 0:
            break
        time.sleep(0.1)
    return request


@step("FindCoordinator of a group", range(4))
def _(world: World, _: int) -> Any:
    return find_one(world)


@step("FindCoordinator of several groups", range(4, 7))
def _(_: World, __: int) -> Any:
    return find_coordinator.Request(coordinator_keys=["g", "h", ""])


@step("FindCoordinator of a kind that does not exist", range(5, 7))
def _(_: World, __: int) -> Any:
    return find_coordinator.Request(key_type=3, coordinator_keys=["g"])


def committing(
    world: World, version: int, group: str, generation: int = -1, member: str = "", note: str = ""
) -> Any:
    part = offset_commit.OffsetCommitRequestPartition
    names = [TOPIC, "no-such-topic"]
    ids = [world.topic_id(TOPIC), NO_SUCH_ID] if version >= IDS_SINCE else [bytes(16)] * 2
    topics = [
        offset_commit.OffsetCommitRequestTopic(name, topic_id, [part(0, 5, -1, note)])
        for name, topic_id in zip(names, ids, strict=True)
    ]
    topics[0].partitions.append(part(9, 5, -1, ""))
    return offset_commit.Request(group, generation, member, topics=topics)


@step("OffsetCommit without a group", COMMIT)
def _(world: World, version: int) -> Any:
    for _ in range(100):  # Apache Kafka has to load the group's partition first.
        answer = world.ask(committing(world, version, "simple"), version)
        if answer.topics[0].partitions[-1].error_code not in (14, 16):
            break
        time.sleep(0.1)
    return committing(world, version, "simple", note="a note")


@step("OffsetCommit of a member of nothing", COMMIT)
def _(world: World, version: int) -> Any:
    return committing(world, version, "nobody", 1, "m")


@step("OffsetCommit with a long note", COMMIT)
def _(world: World, version: int) -> Any:
    return committing(world, version, "simple", note="n" * 4097)


def fetching(world: World, version: int, *groups: str, every: bool = False) -> Any:
    if version < GROUPS_SINCE:
        old = offset_fetch.OffsetFetchRequestTopic
        topics = None if every else [old(TOPIC, [0, 1]), old("no-such-topic", [0])]
        return offset_fetch.Request(groups[0], topics)
    new, asked = offset_fetch.OffsetFetchRequestTopics, offset_fetch.OffsetFetchRequestGroup
    ids = [world.topic_id(TOPIC), NO_SUCH_ID] if version >= IDS_SINCE else [bytes(16)] * 2
    wanted = [new(TOPIC, ids[0], [0, 1]), new("no-such-topic", ids[1], [0])]
    return offset_fetch.Request(
        groups=[asked(group, topics=None if every else wanted) for group in groups]
    )


@step("OffsetFetch of some", FETCH)
def _(world: World, version: int) -> Any:
    return fetching(world, version, "simple", "nobody")


@step("OffsetFetch of all", range(2, 11))
def _(world: World, version: int) -> Any:
    return fetching(world, version, "simple", every=True)


def joining(version: int, group: str, member: str = "", **fields: Any) -> Any:
    protocols = [join_group.JoinGroupRequestProtocol("range", SUBSCRIPTION)]
    timeout_ms = 30_000 if version >= 1 else -1
    request = join_group.Request(group, 30_000, timeout_ms, member, None, "consumer", protocols)
    for name, value in fields.items():
        setattr(request, name, value)
    return request


@step("JoinGroup without a name", JOIN)
def _(_: World, version: int) -> Any:
    return joining(version, "")


@step("JoinGroup with a short session", JOIN)
def _(_: World, version: int) -> Any:
    return joining(version, "nobody", session_timeout_ms=10)


@step("JoinGroup of a member of nothing", JOIN)
def _(_: World, version: int) -> Any:
    return joining(version, "nobody", "m")


@step("JoinGroup for the first time", JOIN)
def _(_: World, version: int) -> Any:
    return joining(version, f"joined-{version}")


@step("JoinGroup with the id that was given", range(4, 10))
def _(world: World, version: int) -> Any:
    member = world.answers["JoinGroup for the first time", version].member_id
    return joining(version, f"joined-{version}", member)


def member_of(world: World, version: int) -> str:
    """The member of the group `joined-<version>`."""
    member: str = world.answers["JoinGroup for the first time", version].member_id
    return member


@step("JoinGroup of a static member", range(5, 10))
def _(_: World, version: int) -> Any:
    return joining(version, f"static-{version}", group_instance_id="one")


@step("JoinGroup of a static member that is back too early", range(5, 10))
def _(_: World, version: int) -> Any:
    return joining(version, f"static-{version}", group_instance_id="one")


@step("Heartbeat of a member of nothing", range(5))
def _(_: World, __: int) -> Any:
    return heartbeat.Request("nobody", 1, "m")


@step("Heartbeat before the assignment", range(5))
def _(world: World, version: int) -> Any:
    return heartbeat.Request(f"joined-{version}", 1, member_of(world, version))


@step("Heartbeat of another generation", range(5))
def _(world: World, version: int) -> Any:
    return heartbeat.Request(f"joined-{version}", 7, member_of(world, version))


def syncing(group: str, generation: int, member: str) -> Any:
    assignments = [sync_group.SyncGroupRequestAssignment(member, b"all")]
    return sync_group.Request(group, generation, member, None, "consumer", "range", assignments)


@step("SyncGroup of a member of nothing", SYNC)
def _(_: World, __: int) -> Any:
    return syncing("nobody", 1, "m")


@step("SyncGroup of another generation", SYNC)
def _(world: World, version: int) -> Any:
    return syncing(f"joined-{version}", 7, member_of(world, version))


@step("SyncGroup without a protocol", SYNC)
def _(world: World, version: int) -> Any:
    return sync_group.Request(f"joined-{version}", 7, member_of(world, version))


@step("SyncGroup of the leader", SYNC)
def _(world: World, version: int) -> Any:
    return syncing(f"joined-{version}", 1, member_of(world, version))


@step("SyncGroup again", SYNC)
def _(world: World, version: int) -> Any:
    return syncing(f"joined-{version}", 1, member_of(world, version))


@step("OffsetCommit of a member", COMMIT)
def _(world: World, version: int) -> Any:
    return committing(world, version, "joined-5", 1, member_of(world, 5))


@step("OffsetCommit of another generation", COMMIT)
def _(world: World, version: int) -> Any:
    return committing(world, version, "joined-5", 7, member_of(world, 5))


@step("OffsetCommit of nobody to a group in use", COMMIT)
def _(world: World, version: int) -> Any:
    return committing(world, version, "joined-5")


@step("DescribeGroups", range(7))
def _(_: World, version: int) -> Any:
    groups = ["joined-5", "static-5", "simple", "nobody"]
    return describe_groups.Request(groups, include_authorized_operations=version >= 3)


@step("ListGroups by state", range(4, 6))
def _(_: World, version: int) -> Any:
    return list_groups.Request(["stable"], ["Classic"] if version >= 5 else [])


@step("ListGroups of a state or type that does not exist", range(5, 6))
def _(_: World, __: int) -> Any:
    return list_groups.Request(["sleepy"], ["cosy"])


@step("OffsetDelete", range(1))
def _(_: World, __: int) -> Any:
    parts = [offset_delete.OffsetDeleteRequestPartition(index) for index in (0, 9)]
    topics = [offset_delete.OffsetDeleteRequestTopic(TOPIC, parts)]
    return offset_delete.Request("joined-5", topics)


@step("OffsetDelete of a group that does not exist", range(1))
def _(_: World, __: int) -> Any:
    return offset_delete.Request("nobody", [])


@step("DeleteGroups", range(3))
def _(_: World, version: int) -> Any:
    names = ["joined-5", "nobody", *(["simple"] if version == 2 else [])]
    return delete_groups.Request(names)


@step("LeaveGroup", range(6))
def _(world: World, version: int) -> Any:
    member, group = member_of(world, version), f"joined-{version}"
    if version < 3:
        return leave_group.Request(group, member)
    identity = leave_group.MemberIdentity
    leaving = [identity("m"), identity("", "one"), identity(member, "one"), identity(member)]
    return leave_group.Request(group, members=leaving)


@step("LeaveGroup of a member of nothing", range(6))
def _(_: World, version: int) -> Any:
    if version < 3:
        return leave_group.Request("nobody", "m")
    return leave_group.Request("nobody", members=[leave_group.MemberIdentity("m")])


@step("DescribeGroups of an empty group", range(7))
def _(_: World, __: int) -> Any:
    return describe_groups.Request(["joined-5"])


def beating(version: int, epoch: int = 0, **fields: Any) -> Any:
    request = consumer_group_heartbeat.Request(f"consumers-{version}", "m", epoch)
    if epoch == 0:
        request.rebalance_timeout_ms = 30_000
        request.subscribed_topic_names, request.topic_partitions = [TOPIC], []
    for name, value in fields.items():
        setattr(request, name, value)
    return request


@step("ConsumerGroupHeartbeat without a name", range(2))
def _(_: World, version: int) -> Any:
    return beating(version, group_id="")


@step("ConsumerGroupHeartbeat without a subscription", range(2))
def _(_: World, version: int) -> Any:
    return beating(version, subscribed_topic_names=None)


@step("ConsumerGroupHeartbeat with an assignor that does not exist", range(2))
def _(_: World, version: int) -> Any:
    return beating(version, server_assignor="cosy")


@step("ConsumerGroupHeartbeat with a bad expression", range(1, 2))
def _(_: World, version: int) -> Any:
    return beating(version, subscribed_topic_regex="(")


@step("ConsumerGroupHeartbeat of a member of nothing", range(2))
def _(_: World, version: int) -> Any:
    return beating(version, 5)


@step("ConsumerGroupHeartbeat to join", range(2))
def _(_: World, version: int) -> Any:
    return beating(version)


def epoch_of(world: World, version: int) -> int:
    epoch: int = world.answers["ConsumerGroupHeartbeat to join", version].member_epoch
    return epoch


@step("ConsumerGroupHeartbeat to stay", range(2))
def _(world: World, version: int) -> Any:
    return beating(version, epoch_of(world, version))


@step("ConsumerGroupHeartbeat of another epoch", range(2))
def _(world: World, version: int) -> Any:
    return beating(version, epoch_of(world, version) + 3)


@step("OffsetCommit of a consumer group's member", COMMIT)
def _(world: World, version: int) -> Any:
    return committing(world, version, "consumers-1", epoch_of(world, 1), "m")


@step("OffsetCommit of another epoch", range(9, 11))
def _(world: World, version: int) -> Any:
    return committing(world, version, "consumers-1", epoch_of(world, 1) + 3, "m")


@step("ConsumerGroupDescribe", range(2))
def _(_: World, version: int) -> Any:
    groups = [f"consumers-{version}", "joined-5", "nobody", ""]
    return consumer_group_describe.Request(groups, include_authorized_operations=True)


@step("DescribeGroups of a consumer group", range(7))
def _(_: World, __: int) -> Any:
    return describe_groups.Request(["consumers-1"])


@step("ConsumerGroupHeartbeat to leave", range(2))
def _(_: World, version: int) -> Any:
    return beating(version, -1)
