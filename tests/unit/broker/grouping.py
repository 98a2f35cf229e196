"""Requests of group members to a broker in a test."""

from typing import Any

from ottla.protocol.messages import find_coordinator, offset_commit, offset_fetch
from tests.unit.broker.serving import Client, World
from tests.unit.groups.driving import GROUP, joining, syncing

# ruff: noqa: ANN401  Answers are of many classes.

QUICK = {
    "group_initial_rebalance_delay_ms": 0,
    "group_consumer_assignment_interval_ms": 0,
    "offsets_topic_num_partitions": 3,
}


def find(world: World, *groups: str) -> Any:
    return world.client().ask(find_coordinator.Request(coordinator_keys=list(groups or (GROUP,))))


def join(client: Client, member_id: str = "", **fields: Any) -> Any:
    """Join as a client does: first for an id, then for a generation."""
    reply = client.ask(joining(member_id, **fields))
    if reply.error_code == 79:
        reply = client.ask(joining(reply.member_id, **fields))
    return reply


def stable(world: World, **fields: Any) -> tuple[Client, int, str]:
    """A group of one: its connection, generation and member id."""
    find(world, fields.get("group", GROUP))
    client = world.client()
    joined = join(client, **fields)
    assert joined.error_code == 0
    request = syncing(joined.generation_id, joined.member_id, {joined.member_id: b"all"})
    request.group_id = fields.get("group", GROUP)
    assert client.ask(request, 4).assignment == b"all"
    return client, joined.generation_id, joined.member_id


def commit(world: World, offset: int, *, topic: str = "t", group: str = GROUP) -> int:
    """By name, of partition 0, without being a member; the error code."""
    part = offset_commit.OffsetCommitRequestPartition(0, offset, -1, "")
    named = offset_commit.OffsetCommitRequestTopic(topic, partitions=[part])
    answer = world.client().ask(offset_commit.Request(group, topics=[named]), 9)
    code: int = answer.topics[0].partitions[0].error_code
    return code


def fetch(world: World, *, topic: str = "t", group: str = GROUP) -> tuple[int, int]:
    """The offset of partition 0 and the group's error code."""
    topics = [offset_fetch.OffsetFetchRequestTopics(topic, partition_indexes=[0])]
    asked = offset_fetch.OffsetFetchRequestGroup(group, topics=topics)
    (found,) = world.client().ask(offset_fetch.Request(groups=[asked]), 9).groups
    if found.error_code:
        return -1, found.error_code
    return found.topics[0].partitions[0].committed_offset, 0
