"""Commits, with a real client and a coordinator."""

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place

from ottla.client.message import Message
from ottla.consumer.commits import Commits
from ottla.consumer.lanes import Lane, Lanes
from ottla.consumer.settings import consumer_config
from ottla.model.types import TopicPartition
from tests.unit.consumer.mock_cluster import MockCluster

SECONDS_MAX = 20


class Rig:
    """A consumer of one partition with its lane."""

    def __init__(self, cluster: MockCluster, commit_s: float = 0.0) -> None:
        cluster.write("t", b"a", b"b", b"c")
        self.cluster = cluster  # It lives as long as it is referenced.
        self.lanes = Lanes()
        config = consumer_config(cluster.bootstrap, "g", {})
        listener = Commits.listener(self.lanes)
        self.consumer = Consumer({**config, "on_commit": listener})
        self.commits = Commits(self.consumer, self.lanes, commit_s)
        self.place = TopicPartition("t", 0)
        self.lanes.assigned([self.place])
        self.consumer.assign([Place("t", 0, 0)])

    @property
    def lane(self) -> Lane:
        lane = self.lanes.get(self.place)
        assert lane is not None
        return lane

    def handle(self, offset: int) -> None:
        self.lane.received(Message("t", 0, offset, 0, False, None, b"", ()))
        task = self.lane.next_task(1)
        task.done, task.is_over = 1, True
        self.lane.settle()

    def committed(self) -> int:
        (found,) = self.consumer.committed([Place("t", 0)], timeout=SECONDS_MAX)
        return int(found.offset)


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig(MockCluster())
    yield rig
    rig.consumer.close()


def test_commit_now_commits_and_updates_the_lane(rig: Rig) -> None:
    rig.handle(0)
    rig.handle(1)
    rig.commits.commit_now(rig.lanes)
    assert rig.committed() == 2
    assert rig.lane.uncommitted_offset is None


def test_a_periodic_commit_updates_the_lane_when_answered(rig: Rig) -> None:
    rig.handle(0)
    rig.commits.commit_if_due(0.0)
    assert rig.lane.uncommitted_offset == 1
    deadline = time.monotonic() + SECONDS_MAX
    while rig.lane.uncommitted_offset is not None and time.monotonic() < deadline:
        rig.consumer.poll(0.05)
    assert rig.lane.committed_offset == 1
    assert rig.committed() == 1


def test_nothing_is_committed_before_it_is_due() -> None:
    rig = Rig(MockCluster(), commit_s=100.0)
    rig.commits.commit_if_due(1.0)
    rig.handle(0)
    rig.commits.commit_if_due(100.0)
    rig.consumer.poll(0.2)
    assert rig.lane.uncommitted_offset == 1
    rig.consumer.close()


def test_commit_before_commits_an_offset_once(rig: Rig) -> None:
    assert rig.commits.commit_before(rig.lane, 3)
    assert rig.committed() == 3
    assert rig.lane.committed_offset == 3
    assert rig.commits.commit_before(rig.lane, 2)
    assert rig.committed() == 3


def test_a_failed_commit_does_not_update_the_lane(rig: Rig) -> None:
    rig.consumer.close()
    lane = rig.lane
    with pytest.raises(RuntimeError):
        rig.commits.commit_before(lane, 3)
    assert lane.committed_offset is None
