"""What a follower does with its leader's answers."""

import pytest

from ottla.broker.connection import Reply
from ottla.broker.faults import Drop, Fail, Fault
from ottla.broker.replica_fetcher import _whole_batches
from ottla.broker.server import Broker
from ottla.model.errors import ErrorCode
from ottla.model.types import TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages import alter_partition_reassignments as wire
from ottla.protocol.messages import delete_records
from ottla.records.record import Record, build_batch
from tests.unit.broker.replicating import Cluster, Node, replicating

NAME = TopicPartition("t", 0)


def batch(base_offset: int, count: int = 1) -> bytes:
    records = [Record(base_offset + i, 0, None, b"v") for i in range(count)]
    return bytes(build_batch(records, base_offset=base_offset))


def test_only_whole_and_right_batches_are_taken() -> None:
    first, second = batch(0, 3), batch(3)
    offsets = [b.base_offset for b in _whole_batches(first + second + batch(4)[:30], 0)]
    assert offsets == [0, 3]
    assert [b.base_offset for b in _whole_batches(first + second, 3)] == [3]
    damaged = bytearray(second)
    damaged[-1] ^= 1
    assert [b.base_offset for b in _whole_batches(first + bytes(damaged), 0)] == [0]
    assert _whole_batches(b"", 0) == []


def away_too_long(cluster: Cluster) -> tuple[Node, Node]:
    """The leader, and a follower that is not started yet: what it lacks has been deleted."""
    cluster.topic(factor=2)
    leader, (follower,) = cluster.leader(), cluster.followers()
    cluster.produce(leader, b"a")
    follower.kill()
    cluster.notice_death(follower)
    for value in (b"b", b"c", b"d"):
        cluster.produce(leader, value)
    asked = delete_records.DeleteRecordsPartition(0, 3)
    topic = delete_records.DeleteRecordsTopic("t", [asked])
    request = delete_records.Request([topic], timeout_ms=1000)
    cluster.ask(leader, request, delete_records.Response)
    return leader, follower


def test_a_follower_that_was_away_too_long_begins_where_the_leaders_log_does() -> None:
    with replicating(brokers=2) as cluster:
        _, follower = away_too_long(cluster)
        follower.start()
        cluster.until(lambda: len(cluster.state().isr) == 2)
        assert follower.partition().log.log_start_offset == 3
        assert follower.values() == [b"d"]


@pytest.mark.parametrize(
    "fault", [Drop(), Fail(ApiKey.LIST_OFFSETS, ErrorCode.NOT_LEADER_OR_FOLLOWER)]
)
def test_a_follower_that_is_not_told_where_to_begin_asks_again(fault: Fault) -> None:
    with replicating(brokers=2) as cluster:
        leader, follower = away_too_long(cluster)

        def spoiled(request: object, reply: Reply, broker: Broker) -> Reply | None:
            # Something else changed meanwhile, so that the next request was made up without it.
            (fetcher,) = follower.broker.replicas._fetchers.values()
            fetcher._plan._look(broker.now)
            return fault(request, reply, broker)

        leader.broker.faults.add(ApiKey.LIST_OFFSETS, spoiled, 2)
        follower.start()
        cluster.until(lambda: len(cluster.state().isr) == 2)
        assert leader.broker.faults.left(ApiKey.LIST_OFFSETS) == 0
        assert follower.values() == [b"d"]


def test_the_start_of_the_log_follows_the_leaders() -> None:
    with replicating(brokers=2) as cluster:
        cluster.topic(factor=2)
        leader, (follower,) = cluster.leader(), cluster.followers()
        for value in (b"a", b"b"):
            cluster.produce(leader, value)
        asked = delete_records.DeleteRecordsPartition(0, 1)
        topic = delete_records.DeleteRecordsTopic("t", [asked])
        request = delete_records.Request([topic], timeout_ms=1000)
        cluster.ask(leader, request, delete_records.Response)
        cluster.until(lambda: follower.partition().log.log_start_offset == 1)


def test_a_leader_that_moved_is_found_again() -> None:
    with replicating(brokers=2, replica_fetch_backoff_ms=100) as cluster:
        cluster.topic(factor=2)
        leader, (follower,) = cluster.leader(), cluster.followers()
        cluster.network.reset_some(leader.host, 1.0)
        assert cluster.produce(leader, b"a").error_code == 0
        assert follower.values() == [b"a"]


def test_what_is_moved_away_is_not_kept() -> None:
    with replicating() as cluster:
        cluster.topic(factor=2)
        cluster.produce(cluster.leader(), b"a")
        (other,) = [n for n in cluster.nodes if n not in cluster.state().replicas]
        leader, (leaving,) = cluster.leader(), cluster.followers()
        moved = wire.ReassignablePartition(0, [leader.number, other])
        request = wire.Request(topics=[wire.ReassignableTopic("t", [moved])])
        cluster.log.decide(request)
        cluster.until(lambda: not cluster.state().removing and not cluster.state().adding)
        cluster.pass_ms(20)
        assert cluster.nodes[other].values() == [b"a"]
        assert NAME not in leaving.broker.directories.online()[0].logs
        assert cluster.produce(cluster.leader(), b"b").error_code == 0


def test_a_new_partition_does_not_wait_for_a_fetch_that_waits() -> None:
    with replicating(brokers=2, replica_fetch_wait_max_ms=20_000) as cluster:
        cluster.topic("other", partitions=4, factor=2)
        cluster.pass_ms(1_000)
        cluster.topic(factor=2)
        before = cluster.clock.monotonic()
        assert cluster.produce(cluster.leader(), b"a").error_code == 0
        assert cluster.clock.monotonic() - before < 100


def test_a_leader_that_answers_every_fetch_with_an_error_is_not_asked_without_a_rest() -> None:
    with replicating(brokers=2, replica_fetch_backoff_ms=1000) as cluster:
        cluster.topic(factor=2)
        leader = cluster.leader()
        cluster.produce(leader, b"a")
        fault = Fail(ApiKey.FETCH, ErrorCode.UNKNOWN_SERVER_ERROR)
        leader.broker.faults.add(ApiKey.FETCH, fault, 1000)
        before = leader.broker.metrics.requests[ApiKey.FETCH]
        cluster.pass_ms(10_000)
        assert 5 <= leader.broker.metrics.requests[ApiKey.FETCH] - before <= 15
