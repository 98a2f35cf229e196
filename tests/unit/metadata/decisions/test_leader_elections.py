from ottla.metadata.decisions.context import ControllerSettings
from ottla.metadata.image.cluster import NO_LEADER, RECOVERING, Partition
from ottla.model.errors import ErrorCode
from ottla.model.types import Monotonic, NodeId
from ottla.protocol.messages import alter_partition
from ottla.protocol.messages import elect_leaders as wire
from ottla.protocol.metadata_records import ConfigRecord
from tests.unit.metadata.controller_driver import ControllerDriver


def partition(deciding: ControllerDriver) -> Partition:
    return deciding.image.topics_by_name["t"].partitions[0]


def displaced(deciding: ControllerDriver) -> None:
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


def asked(deciding: ControllerDriver, kind: int, *indexes: int, topic: str = "t") -> list[int]:
    named = [wire.TopicPartitions(topic, list(indexes))]
    response = deciding.ask(wire.Request(kind, named))
    return [p.error_code for t in response.replica_election_results for p in t.partition_result]


def test_the_preferred_replica_is_elected() -> None:
    deciding = ControllerDriver(brokers=2)
    deciding.create("t", 1, 2)
    displaced(deciding)
    assert asked(deciding, 0, 0) == [0]
    assert partition(deciding).leader == partition(deciding).replicas[0]
    assert asked(deciding, 0, 0) == [ErrorCode.ELECTION_NOT_NEEDED]


def test_the_preferred_replica_is_not_elected_out_of_sync() -> None:
    deciding = ControllerDriver(brokers=2)
    deciding.create("t", 1, 2)
    deciding.heartbeat(partition(deciding).replicas[0], want_fence=True)
    assert asked(deciding, 0, 0) == [ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE]


def test_an_unclean_election_is_held_only_for_leaderless_partitions() -> None:
    deciding = ControllerDriver(brokers=2)
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


def test_a_request_for_all_partitions_lists_only_changes() -> None:
    deciding = ControllerDriver(brokers=2)
    deciding.create("t", 2, 2)
    response = deciding.ask(wire.Request(0, None))
    (topic,) = response.replica_election_results
    assert topic.partition_result == []


def test_unknown_partitions_are_refused() -> None:
    deciding = ControllerDriver()
    deciding.create("t")
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert asked(deciding, 0, 7) == [unknown]
    assert asked(deciding, 0, 0, topic="nope") == [unknown]
    refusal = deciding.ask(wire.Request(9, None))
    assert refusal.code == ErrorCode.INVALID_REQUEST


def test_preferred_leaders_are_elected_periodically() -> None:
    deciding = ControllerDriver(brokers=2)
    deciding.create("t", 1, 2)
    deciding.controller.activated(Monotonic(1_000))
    displaced(deciding)
    for node in (1, 2):
        deciding.heartbeat(node, now=295_000)
    assert deciding.tick(300_999) == []
    assert len(deciding.tick(301_000)) == 1
    assert partition(deciding).leader == partition(deciding).replicas[0]


def test_periodic_preferred_election_can_be_disabled() -> None:
    settings = ControllerSettings(NodeId(1), is_leadership_balanced=False)
    deciding = ControllerDriver(brokers=2, settings=settings)
    deciding.create("t", 1, 2)
    deciding.controller.activated(Monotonic(1_000))
    displaced(deciding)
    for node in (1, 2):
        deciding.heartbeat(node, now=305_000)
    assert deciding.tick(310_000) == []


def test_a_topic_with_unclean_election_gets_a_leader_periodically() -> None:
    deciding = ControllerDriver(brokers=2)
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
