from ottla.metadata.decisions.context import ControllerSettings
from ottla.metadata.image.cluster import NO_LEADER, RECOVERING, Partition
from ottla.model.errors import ErrorCode
from ottla.model.types import Monotonic, NodeId
from ottla.protocol.messages import alter_partition
from ottla.protocol.messages import elect_leaders as wire
from ottla.protocol.metadata_records import ConfigRecord
from tests.unit.metadata.making import Deciding


def partition(deciding: Deciding) -> Partition:
    return deciding.image.topics_by_name["t"].partitions[0]


def displaced(deciding: Deciding) -> None:
    """The preferred replica was away: another one leads, and it is in sync again."""
    preferred = partition(deciding).replicas[0]
    deciding.heartbeat(preferred, want_fence=True)
    deciding.heartbeat(preferred)
    now = partition(deciding)
    isr = [alter_partition.BrokerState(node, deciding.epochs[node]) for node in now.replicas]
    part = alter_partition.RequestPartitionData(
        0, now.leader_epoch, [], isr, 0, now.partition_epoch
    )
    topic = alter_partition.RequestTopicData(deciding.image.topics_by_name["t"].id, [part])
    deciding.ask(alter_partition.Request(now.leader, deciding.epochs[now.leader], [topic]))
    assert partition(deciding).leader != preferred


def asked(deciding: Deciding, kind: int, *indexes: int, topic: str = "t") -> list[int]:
    named = [wire.TopicPartitions(topic, list(indexes))]
    response = deciding.ask(wire.Request(kind, named))
    return [p.error_code for t in response.replica_election_results for p in t.partition_result]


def test_the_preferred_replica_gets_its_partition_back() -> None:
    deciding = Deciding(brokers=2)
    deciding.create("t", 1, 2)
    displaced(deciding)
    assert asked(deciding, 0, 0) == [0]
    assert partition(deciding).leader == partition(deciding).replicas[0]
    assert asked(deciding, 0, 0) == [ErrorCode.ELECTION_NOT_NEEDED]


def test_it_does_not_while_it_is_not_in_sync() -> None:
    deciding = Deciding(brokers=2)
    deciding.create("t", 1, 2)
    deciding.heartbeat(partition(deciding).replicas[0], want_fence=True)
    assert asked(deciding, 0, 0) == [ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE]


def test_an_unclean_election_is_held_only_where_nobody_leads() -> None:
    deciding = Deciding(brokers=2)
    deciding.create("t", 1, 2)
    assert asked(deciding, 1, 0) == [ErrorCode.ELECTION_NOT_NEEDED]
    first, second = partition(deciding).replicas
    deciding.heartbeat(second, want_fence=True)
    deciding.heartbeat(first, want_fence=True)
    assert asked(deciding, 1, 0) == [ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE]
    deciding.heartbeat(second)
    assert partition(deciding).leader == NO_LEADER  # It was not in sync.
    assert asked(deciding, 1, 0) == [0]
    assert partition(deciding).leader == second
    assert partition(deciding).leader_recovery_state == RECOVERING


def test_who_asks_for_all_hears_only_of_those_that_change() -> None:
    deciding = Deciding(brokers=2)
    deciding.create("t", 2, 2)
    response = deciding.ask(wire.Request(0, None))
    (topic,) = response.replica_election_results
    assert topic.partition_result == []


def test_what_is_not_there_is_refused() -> None:
    deciding = Deciding()
    deciding.create("t")
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert asked(deciding, 0, 7) == [unknown]
    assert asked(deciding, 0, 0, topic="nope") == [unknown]
    refusal = deciding.ask(wire.Request(9, None))
    assert refusal.code == ErrorCode.INVALID_REQUEST


def test_leadership_is_balanced_when_it_is_time() -> None:
    deciding = Deciding(brokers=2)
    deciding.create("t", 1, 2)
    deciding.controller.activated(Monotonic(1_000))
    displaced(deciding)
    for node in (1, 2):
        deciding.heartbeat(node, now=295_000)
    assert deciding.tick(300_999) == []
    assert len(deciding.tick(301_000)) == 1
    assert partition(deciding).leader == partition(deciding).replicas[0]


def test_it_is_not_if_the_operator_says_so() -> None:
    settings = ControllerSettings(NodeId(1), is_leadership_balanced=False)
    deciding = Deciding(brokers=2, settings=settings)
    deciding.create("t", 1, 2)
    deciding.controller.activated(Monotonic(1_000))
    displaced(deciding)
    for node in (1, 2):
        deciding.heartbeat(node, now=305_000)
    assert deciding.tick(310_000) == []


def test_a_topic_that_may_lose_records_gets_a_leader_in_time() -> None:
    deciding = Deciding(brokers=2)
    deciding.create("t", 1, 2)
    first, second = partition(deciding).replicas
    deciding.heartbeat(second, want_fence=True)
    deciding.heartbeat(first, want_fence=True)
    deciding.heartbeat(second)
    deciding.controller.activated(Monotonic(1_000))
    deciding.heartbeat(second, now=305_000)
    assert deciding.tick(305_000) == []
    deciding.write(ConfigRecord(2, "t", "unclean.leader.election.enable", "true"))
    deciding.heartbeat(second, now=605_000)
    deciding.tick(605_001)
    deciding.tick(605_002)
    assert partition(deciding).leader == second
