"""Requests about groups that make little sense, from a seed: small pools, so that they meet."""

from random import Random
from typing import Any

from ottla.groups.administration import ListGroups
from ottla.groups.coordinator import (
    DeleteGroup,
    DescribeConsumerGroup,
    DescribeGroup,
    ExpireOffsets,
    TopicsChanged,
    TopicsDeleted,
)
from ottla.protocol.messages import (
    consumer_group_heartbeat,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from tests.unit.groups.consuming import topic_id
from tests.unit.groups.driving import subscription

# ruff: noqa: ANN401  Requests are of many classes; chance here needs no secrets.


class Chaos:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.members = ["", "m1", "m2"]
        self.epochs = [0, 1]

    def learn(self, reply: Any) -> None:
        member_id = getattr(reply, "member_id", None)
        if member_id and member_id not in self.members:
            self.members = [*self.members[:3], *self.members[3:][-2:], member_id]
        for name in ("generation_id", "member_epoch"):
            epoch = getattr(reply, name, None)
            if epoch is not None and epoch >= 0 and epoch not in self.epochs:
                self.epochs = [*self.epochs[-2:], epoch]

    def request(self) -> Any:
        pick = self.random.choice
        makers = (
            self.join, self.join, self.sync, self.sync, self.beat, self.leave, self.commit,
            self.fetch, self.delete_offsets, self.consume, self.consume, self.other,
        )  # fmt: skip
        return pick(makers)()

    def group(self) -> str:
        return self.random.choice(["g"] * 12 + ["h"] * 2 + [""])

    def member(self) -> str:
        return self.random.choice(self.members)

    def instance(self) -> str | None:
        return self.random.choice([None] * 8 + ["one", "one", "two"])

    def number(self) -> int:
        return self.random.choice([*self.epochs * 4, -2, -1, 0, 99])

    def join(self) -> Any:
        pick = self.random.choice
        names = pick([["range"], ["range"], ["range", "sticky"], ["sticky", "range"], ["x"], []])
        data = pick([subscription("t"), subscription("u"), b"", b"\xff\xff\xff"])
        protocols = [join_group.JoinGroupRequestProtocol(name, data) for name in names]
        return join_group.Request(
            self.group(),
            pick([10_000] * 10 + [6_000, 5]),
            pick([30_000, 1_000, 0, -1]),
            self.member(),
            self.instance(),
            pick(["consumer"] * 10 + ["connect", ""]),
            protocols,
        )

    def sync(self) -> Any:
        assignments = [
            sync_group.SyncGroupRequestAssignment(self.member(), b"all")
            for _ in range(self.random.randint(0, 3))
        ]
        return sync_group.Request(
            self.group(), self.number(), self.member(), self.instance(), None, None, assignments
        )

    def beat(self) -> Any:
        return heartbeat.Request(self.group(), self.number(), self.member(), self.instance())

    def leave(self) -> Any:
        leaving = [
            leave_group.MemberIdentity(self.member(), self.instance())
            for _ in range(self.random.randint(0, 3))
        ]
        return leave_group.Request(self.group(), self.member(), leaving)

    def commit(self) -> Any:
        parts = [offset_commit.OffsetCommitRequestPartition(0, self.number(), -1, None)]
        topics = [offset_commit.OffsetCommitRequestTopic("t", topic_id("t"), parts)]
        return offset_commit.Request(
            self.group(), self.number(), self.member(), self.instance(), -1, topics
        )

    def fetch(self) -> Any:
        return offset_fetch.OffsetFetchRequestGroup(
            self.group(), self.random.choice([None, self.member()]), self.number(), None
        )

    def delete_offsets(self) -> Any:
        parts = [offset_delete.OffsetDeleteRequestPartition(0)]
        topics = [offset_delete.OffsetDeleteRequestTopic("t", parts)]
        return offset_delete.Request(self.group(), topics)

    def consume(self) -> Any:
        pick = self.random.choice
        owned = [consumer_group_heartbeat.TopicPartitions(topic_id("t"), [pick([0, 1, 9])])]
        return consumer_group_heartbeat.Request(
            self.group(),
            self.member(),
            self.number(),
            self.instance(),
            pick([None, "rack"]),
            pick([30_000] * 8 + [1_000, 0, -1]),
            pick([None, [], ["t"], ["t"], ["t", "u"], ["none"]]),
            pick([None] * 8 + ["", "t.*", "("]),
            pick([None] * 8 + ["range", "uniform", "cosy"]),
            pick([[], [], [], [], None, owned]),
        )

    def other(self) -> Any:
        group = self.group()
        return self.random.choice(
            [
                DeleteGroup(group),
                DescribeGroup(group),
                DescribeConsumerGroup(group),
                ExpireOffsets(),
                TopicsChanged(),
                TopicsDeleted(frozenset({"t"})),
                ListGroups.of(list_groups.Request()),
            ]
        )
