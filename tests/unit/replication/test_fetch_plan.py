from ottla.model.errors import ErrorCode
from ottla.model.types import Monotonic, NodeId
from ottla.protocol.messages import fetch as wire
from ottla.replication.fetch_plan import FetchPlan, Key, Limits
from ottla.replication.follower import Follower
from tests.unit.replication.partition_model import ModelLog

NOW = Monotonic(0)
TOPIC = b"t" * 16


class Planning:
    def __init__(self, partitions: int) -> None:
        self.plan = FetchPlan(NodeId(2), Limits())
        self.logs = {(TOPIC, index): ModelLog() for index in range(partitions)}
        self.followers = {k: Follower(log, 5, 0, backoff_ms=50) for k, log in self.logs.items()}
        for key, follower in self.followers.items():
            self.plan.follow(key, follower)

    def request(self, now: int = 0) -> wire.Request | None:
        return self.plan.next_request(20, Monotonic(now))

    def answer(self, session: int = 77, error: int = 0, *parts: wire.PartitionData) -> list[Key]:
        topics = [wire.FetchableTopicResponse(topic_id=TOPIC, partitions=list(parts))]
        response = wire.Response(error_code=error, session_id=session, responses=topics)
        return [key for key, _, _, _ in self.plan.answered(response)]


def asked(request: wire.Request | None) -> list[tuple[int, int]]:
    assert request is not None
    return [(p.partition, p.fetch_offset) for t in request.topics for p in t.partitions]


def test_first_request_names_all_partitions_and_the_replica() -> None:
    planning = Planning(3)
    request = planning.request()
    assert asked(request) == [(0, 0), (1, 0), (2, 0)]
    assert request is not None
    assert request.replica_state == wire.ReplicaState(2, 20)
    assert (request.session_id, request.session_epoch) == (0, 0)
    partition = request.topics[0].partitions[0]
    assert (partition.current_leader_epoch, partition.last_fetched_epoch) == (5, -1)


def test_later_requests_name_only_changed_partitions() -> None:
    planning = Planning(3)
    planning.request()
    assert planning.answer(77, 0, wire.PartitionData(1)) == [(TOPIC, 1)]
    planning.logs[TOPIC, 1].append(5, 1)
    request = planning.request()
    assert asked(request) == [(1, 1)]
    assert request is not None
    assert (request.session_id, request.session_epoch) == (77, 1)
    planning.answer(77, 0)
    request = planning.request()
    assert request is not None
    assert request.topics == []
    assert request.session_epoch == 2


def test_partition_no_longer_followed_is_forgotten() -> None:
    planning = Planning(2)
    planning.request()
    planning.plan.unfollow((TOPIC, 0))
    assert planning.answer(77, 0, wire.PartitionData(0), wire.PartitionData(1)) == [(TOPIC, 1)]
    request = planning.request()
    assert request is not None
    assert request.forgotten_topics_data == [wire.ForgottenTopic(topic_id=TOPIC, partitions=[0])]
    assert len(planning.plan) == 1


def test_lost_response_starts_a_new_session_with_all_partitions() -> None:
    planning = Planning(2)
    planning.request()
    planning.answer()
    planning.request()
    planning.plan.lost()
    request = planning.request()
    assert asked(request) == [(0, 0), (1, 0)]
    assert request is not None
    assert (request.session_id, request.session_epoch) == (0, 0)


def test_session_unknown_to_the_leader_is_reopened() -> None:
    for error, session_id in (
        (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0),
        (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 77),
    ):
        planning = Planning(1)
        planning.request()
        planning.answer(77)
        planning.request()
        planning.answer(0, error)
        request = planning.request()
        assert asked(request) == [(0, 0)]
        assert request is not None
        assert (request.session_id, request.session_epoch) == (session_id, 0)


def test_without_a_session_each_request_names_all_partitions() -> None:
    planning = Planning(1)
    planning.request()
    planning.answer(0)
    assert asked(planning.request()) == [(0, 0)]


def test_failed_partition_is_left_out_until_its_backoff_ends() -> None:
    planning = Planning(2)
    planning.request()
    planning.answer(77, 0, wire.PartitionData(0))
    planning.followers[TOPIC, 0].failed(Monotonic(10))
    request = planning.request(15)
    assert request is not None
    assert request.forgotten_topics_data[0].partitions == [0]
    assert planning.plan.next_retry_at() == 20
    planning.answer()
    assert asked(planning.request(20)) == [(0, 0)]
    assert planning.plan.next_retry_at() is None


def test_refused_partition_is_sent_again_when_its_backoff_already_ended() -> None:
    """A late check on a busy broker: the leader ignores the partition unless it is sent again."""
    planning = Planning(2)
    planning.request()
    refused = wire.PartitionData(0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    planning.answer(77, 0, refused)
    planning.followers[TOPIC, 0].failed(Monotonic(10))
    assert asked(planning.request(1000)) == [(0, 0)]


def test_out_of_range_partition_is_sent_again_with_the_same_offset() -> None:
    planning = Planning(1)
    planning.request()
    planning.answer(77, 0, wire.PartitionData(0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE))
    planning.plan.changed((TOPIC, 0))
    assert asked(planning.request()) == [(0, 0)]


def test_partition_whose_append_failed_is_sent_again() -> None:
    planning = Planning(1)
    planning.request()
    planning.answer(77, 0, wire.PartitionData(0, records=b"x"))
    planning.followers[TOPIC, 0].failed(Monotonic(10))
    assert asked(planning.request(1000)) == [(0, 0)]


def test_response_of_an_earlier_epoch_is_dropped() -> None:
    planning = Planning(1)
    planning.request()
    planning.plan.follow((TOPIC, 0), Follower(planning.logs[TOPIC, 0], 6, 0, backoff_ms=50))
    assert planning.answer(77, 0, wire.PartitionData(0)) == []
    request = planning.request()
    assert request is not None
    assert request.topics[0].partitions[0].current_leader_epoch == 6


def test_no_request_without_partitions() -> None:
    assert FetchPlan(NodeId(2), Limits()).next_request(20, NOW) is None
    planning = Planning(1)
    planning.plan.unfollow((TOPIC, 0))
    assert planning.request() is None


def test_quiet_partitions_cost_nothing() -> None:
    planning = Planning(5_000)
    planning.request()
    planning.answer()
    for _ in range(100):
        request = planning.request()
        assert request is not None
        assert request.topics == []
        planning.answer(77)


def test_new_partitions_are_sent_while_a_request_is_in_flight() -> None:
    planning = Planning(1)
    first = planning.request()
    assert first is not None
    assert planning.request() is None  # There is no session yet to add to.
    planning.answer()
    planning.request()
    assert planning.request() is None  # Nothing new.
    planning.logs[TOPIC, 1] = ModelLog()
    planning.followers[TOPIC, 1] = Follower(planning.logs[TOPIC, 1], 5, 0, backoff_ms=50)
    planning.plan.follow((TOPIC, 1), planning.followers[TOPIC, 1])
    more = planning.request()
    assert asked(more) == [(1, 0)]
    assert more is not None
    assert more.session_epoch == 2
    assert planning.request() is None  # At most two requests in flight.
    assert planning.answer(77, 0, wire.PartitionData(0)) == [(TOPIC, 0)]
    assert planning.answer(77, 0, wire.PartitionData(1)) == [(TOPIC, 1)]


def test_response_to_an_outdated_fetch_state_is_dropped() -> None:
    planning = Planning(2)
    planning.request()
    planning.answer()
    planning.request()
    planning.plan.follow((TOPIC, 0), Follower(planning.logs[TOPIC, 0], 6, 0, backoff_ms=50))
    assert asked(planning.request()) == [(0, 0)]
    assert planning.answer(77, 0, wire.PartitionData(0), wire.PartitionData(1)) == [(TOPIC, 1)]
    assert planning.answer(77, 0, wire.PartitionData(0)) == [(TOPIC, 0)]
