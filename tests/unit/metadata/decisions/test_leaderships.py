from ottla.metadata.decisions import leaderships
from ottla.model.types import NodeId
from tests.unit.metadata.controller_driver import ControllerDriver

ONE, TWO = NodeId(1), NodeId(2)


def test_a_broker_that_leaves_hands_its_partitions_over() -> None:
    deciding = ControllerDriver(brokers=2)
    deciding.create("t", 4, 2)
    deciding.write(*leaderships.leave(deciding.context, ONE))
    partitions = deciding.image.topics_by_name["t"].partitions.values()
    assert {partition.leader for partition in partitions} == {TWO}
    assert {partition.isr for partition in partitions} == {(TWO,)}
    assert not leaderships.is_needed(deciding.context, ONE)
    assert leaderships.is_needed(deciding.context, TWO)


def test_partitions_on_other_disks_do_not_change() -> None:
    deciding = ControllerDriver(brokers=2)
    deciding.create("t", 2, 2)
    assert leaderships.leave_directories(deciding.context, ONE, {b"x" * 16}) == []
    assert leaderships.leave_directories(deciding.context, ONE, {b"\1" * 16}) != []


def test_a_replica_on_a_lost_disk_is_not_eligible_while_others_are_in_sync() -> None:
    deciding = ControllerDriver(brokers=2, features={"eligible.leader.replicas.version": 1})
    deciding.create("t", 1, 2, min_insync_replicas="2")
    deciding.write(*leaderships.leave_directories(deciding.context, ONE, {b"\1" * 16}))
    partition = deciding.image.topics_by_name["t"].partitions[0]
    assert (partition.leader, partition.isr, partition.elr) == (TWO, (TWO,), ())


def test_an_eligible_replica_that_loses_its_disk_leaves_the_elr() -> None:
    deciding = ControllerDriver(brokers=2, features={"eligible.leader.replicas.version": 1})
    deciding.create("t", 1, 2, min_insync_replicas="2")
    deciding.write(*leaderships.leave(deciding.context, ONE))
    assert deciding.image.topics_by_name["t"].partitions[0].elr == (ONE,)
    deciding.write(*leaderships.leave_directories(deciding.context, ONE, {b"\1" * 16}))
    assert deciding.image.topics_by_name["t"].partitions[0].elr == ()


def test_the_only_complete_replica_stays_eligible_though_its_disk_is_lost() -> None:
    deciding = ControllerDriver(brokers=2, features={"eligible.leader.replicas.version": 1})
    deciding.create("t", 1, 2)
    deciding.write(*leaderships.leave(deciding.context, TWO))
    deciding.write(*leaderships.leave_directories(deciding.context, ONE, {b"\1" * 16}))
    partition = deciding.image.topics_by_name["t"].partitions[0]
    assert (partition.leader, partition.isr, partition.elr) == (-1, (), (ONE,))


def test_a_returning_broker_leads_only_leaderless_partitions() -> None:
    deciding = ControllerDriver(brokers=2)
    deciding.create("alone", 1)
    alone = deciding.image.topics_by_name["alone"].partitions[0].leader
    deciding.heartbeat(alone, want_fence=True)
    assert deciding.image.topics_by_name["alone"].partitions[0].leader == -1
    other = TWO if alone == ONE else ONE
    assert leaderships.come_back(deciding.context, other) == []
    changes = leaderships.come_back(deciding.context, alone)
    assert [change.leader for change in changes] == [alone]


def test_an_unregistered_broker_leaves_the_elr_too() -> None:
    deciding = ControllerDriver(features={"eligible.leader.replicas.version": 1})
    deciding.create("t", 1)
    deciding.write(*leaderships.leave(deciding.context, ONE))
    assert deciding.image.topics_by_name["t"].partitions[0].elr == (ONE,)
    assert leaderships.forget(deciding.context, ONE) == []  # No other replica could lead.
    deciding.write(*leaderships.lose(deciding.context, ONE))
    assert deciding.image.topics_by_name["t"].partitions[0].elr == ()


def test_the_minimum_of_in_sync_replicas_is_the_topics_own() -> None:
    deciding = ControllerDriver(brokers=3, features={"eligible.leader.replicas.version": 1})
    deciding.create("t", 1, 3, min_insync_replicas="2")
    partition = deciding.image.topics_by_name["t"].partitions[0]
    for node in partition.replicas[1:]:
        deciding.write(*leaderships.leave(deciding.context, node))
    after = deciding.image.topics_by_name["t"].partitions[0]
    assert after.isr == (partition.leader,)
    assert after.elr == (partition.replicas[2],)  # The first to leave left enough behind.
