"""What other brokers fetch from a leader."""

# ruff: noqa: ANN401  The fields of a request are of several types.

from typing import Any

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import fetch as wire
from ottla.protocol.messages import produce
from ottla.records.batch import Batch
from ottla.records.record import Record, build_batch
from tests.unit.broker.replicating import Cluster, Node, produced, replicating


def request(
    cluster: Cluster, follower: Node, offset: int = 0, *, epoch: int | None = None, **fields: Any
) -> wire.Request:
    """A fetch that `follower` might have sent."""
    state = cluster.state()
    part = wire.FetchPartition(
        partition=0,
        current_leader_epoch=fields.pop("leader_epoch", state.leader_epoch),
        fetch_offset=offset,
        last_fetched_epoch=fields.pop("last_fetched_epoch", -1),
        partition_max_bytes=1 << 20,
    )
    topic = wire.FetchTopic(topic_id=cluster.log.image.topics_by_name["t"].id, partitions=[part])
    own = cluster.log.image.brokers[follower.number].epoch  # type: ignore[index]
    values: dict[str, Any] = {
        "replica_state": wire.ReplicaState(follower.number, own if epoch is None else epoch),
        "max_wait_ms": 0,
        "min_bytes": 1,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [topic],
    }
    return wire.Request(**(values | fields))


def asked(cluster: Cluster, follower: Node, offset: int = 0, **fields: Any) -> wire.PartitionData:
    asking = request(cluster, follower, offset, **fields)
    response = cluster.ask(cluster.leader(), asking, wire.Response)
    return response.responses[0].partitions[0]


def alone(cluster: Cluster) -> Node:
    """A leader whose followers are gone; the first of them."""
    cluster.topic()
    followers = cluster.followers()
    for node in followers:
        node.kill()
    return followers[0]


def test_a_follower_gets_what_is_not_committed_yet() -> None:
    with replicating() as cluster:
        follower = alone(cluster)
        cluster.produce(cluster.leader(), b"a", acks=1)
        answer = asked(cluster, follower)
        assert b"a" in bytes(answer.records)
        assert answer.high_watermark == 0


def test_what_it_asks_for_says_what_it_has() -> None:
    with replicating() as cluster:
        follower = alone(cluster)
        cluster.produce(cluster.leader(), b"a", acks=1)
        asked(cluster, follower, 1)
        leader = cluster.leader().partition().leader
        assert leader is not None
        assert leader.end_of(follower.number) == 1  # type: ignore[arg-type]


def test_a_fetch_that_does_not_fit_is_refused() -> None:
    with replicating() as cluster:
        follower = alone(cluster)
        assert asked(cluster, follower, 5).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        stale = asked(cluster, follower, leader_epoch=99)
        assert stale.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        assert asked(cluster, follower, 0).error_code == 0
        earlier = asked(cluster, follower, 0, epoch=0)
        assert earlier.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_log_that_parts_from_the_leaders_is_told_where() -> None:
    with replicating() as cluster:
        follower = alone(cluster)
        cluster.produce(cluster.leader(), b"a", acks=1)
        answer = asked(cluster, follower, 3, last_fetched_epoch=0)
        assert answer.diverging_epoch == wire.EpochEndOffset(0, 1)


def test_a_log_whose_last_epoch_the_leader_never_had_is_told_where_the_epoch_before_ends() -> None:
    """KIP-279: the end of that earlier epoch lies past the offset that is asked for."""
    with replicating() as cluster:
        follower = alone(cluster)
        leader = cluster.leader()
        cluster.produce(leader, b"a", b"b", b"c", acks=1)
        newer = build_batch([Record(3, 0, None, b"d")], base_offset=3, leader_epoch=5)
        leader.partition().log.append([Batch(newer)], cluster.clock.wall())
        leader.partition().leader_epoch = 5
        for offset in (2, 3):  # Our epochs end at 3: by its end alone, nothing diverges.
            answer = asked(cluster, follower, offset, leader_epoch=5, last_fetched_epoch=2)
            assert answer.diverging_epoch == wire.EpochEndOffset(0, 3)
            assert not answer.records
        answer = asked(cluster, follower, 3, leader_epoch=5, last_fetched_epoch=0)
        assert answer.diverging_epoch.epoch == -1
        assert b"d" in bytes(answer.records)


def test_sessions_that_are_not_there_are_refused() -> None:
    with replicating() as cluster:
        follower = alone(cluster)
        for session_id, epoch, code in (
            (77, 1, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
            (None, 9, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        ):
            first = cluster.ask(
                cluster.leader(), request(cluster, follower, session_epoch=0), wire.Response
            )
            asking = request(cluster, follower, session_epoch=epoch)
            asking.session_id = session_id or first.session_id
            assert cluster.ask(cluster.leader(), asking, wire.Response).error_code == code


def test_a_fetch_waits_until_there_is_something() -> None:
    with replicating() as cluster:
        follower = alone(cluster)
        first = cluster.ask(
            cluster.leader(), request(cluster, follower, session_epoch=0), wire.Response
        )
        waiting = request(
            cluster, follower, session_id=first.session_id, session_epoch=1, max_wait_ms=400
        )
        before = cluster.clock.monotonic()
        assert cluster.ask(cluster.leader(), waiting, wire.Response).responses == []
        assert 390 <= cluster.clock.monotonic() - before <= 450


def test_a_newer_fetch_ends_the_waiting_of_the_last() -> None:
    with replicating() as cluster:
        follower = alone(cluster)
        leader = cluster.leader()
        opened = request(cluster, follower, session_epoch=0)
        session_id = cluster.ask(leader, opened, wire.Response).session_id

        async def two() -> float:
            connection = await cluster.connection(leader)
            sent = [
                connection.send(
                    request(cluster, follower, session_id=session_id, session_epoch=epoch,
                            max_wait_ms=wait_ms),
                    wire.Response,
                )
                for epoch, wait_ms in ((1, 5_000), (2, 0))
            ]  # fmt: skip
            before = cluster.clock.monotonic()
            for each in sent:
                assert (await each).error_code == 0
            return cluster.clock.monotonic() - before

        assert cluster.run(two()) < 100


def test_all_that_grows_in_one_turn_leaves_in_one_answer() -> None:
    with replicating(brokers=2) as cluster:
        cluster.topic(partitions=20, factor=2)
        leader = cluster.nodes[1]
        led = [i for i in range(20) if cluster.state(i).leader == 1]
        follower = cluster.nodes[2]
        cluster.pass_ms(1_200)  # Its fetch waits.
        session = next(iter(leader.broker.replicas.sessions._sessions.values()))
        epoch = session.epoch
        for index in led:
            leader.partition(index)
        topic_id = cluster.log.image.topics_by_name["t"].id
        asking = produced(topic_id, (b"x",), -1, led[0], 5_000)
        asking.topic_data[0].partition_data += [
            produced(topic_id, (b"x",), -1, i, 5_000).topic_data[0].partition_data[0]
            for i in led[1:]
        ]
        answer = cluster.ask(leader, asking, produce.Response)
        assert {p.error_code for p in answer.responses[0].partition_responses} == {0}
        assert session.epoch - epoch <= 2
        assert all(follower.values(i) == [b"x"] for i in led)
