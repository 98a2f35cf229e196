from ottla.metadata.decisions import leaderships
from ottla.model.types import NodeId
from tests.unit.metadata.making import Deciding

ONE, TWO = NodeId(1), NodeId(2)


def test_a_broker_that_leaves_hands_its_partitions_over() -> None:
    deciding = Deciding(brokers=2)
    deciding.create("t", 4, 2)
    deciding.write(*leaderships.leave(deciding.around, ONE))
    partitions = deciding.image.topics_by_name["t"].partitions.values()
    assert {partition.leader for partition in partitions} == {TWO}
    assert {partition.isr for partition in partitions} == {(TWO,)}
    assert not leaderships.leads_any(deciding.around, ONE)


def test_partitions_on_other_disks_are_not_concerned() -> None:
    deciding = Deciding(brokers=2)
    deciding.create("t", 2, 2)
    assert leaderships.leave_directories(deciding.around, ONE, {b"x" * 16}) == []
    assert leaderships.leave_directories(deciding.around, ONE, {b"\1" * 16}) != []


def test_who_lost_its_disk_is_not_eligible_while_others_have_all_of_it() -> None:
    deciding = Deciding(brokers=2, features={"eligible.leader.replicas.version": 1})
    deciding.create("t", 1, 2, min_insync_replicas="2")
    deciding.write(*leaderships.leave_directories(deciding.around, ONE, {b"\1" * 16}))
    partition = deciding.image.topics_by_name["t"].partitions[0]
    assert (partition.leader, partition.isr, partition.elr) == (TWO, (TWO,), ())


def test_who_was_eligible_and_then_loses_its_disk_is_so_no_more() -> None:
    deciding = Deciding(brokers=2, features={"eligible.leader.replicas.version": 1})
    deciding.create("t", 1, 2, min_insync_replicas="2")
    deciding.write(*leaderships.leave(deciding.around, ONE))
    assert deciding.image.topics_by_name["t"].partitions[0].elr == (ONE,)
    deciding.write(*leaderships.leave_directories(deciding.around, ONE, {b"\1" * 16}))
    assert deciding.image.topics_by_name["t"].partitions[0].elr == ()


def test_the_last_who_had_all_of_it_is_waited_for_though_its_disk_is_lost() -> None:
    deciding = Deciding(brokers=2, features={"eligible.leader.replicas.version": 1})
    deciding.create("t", 1, 2)
    deciding.write(*leaderships.leave(deciding.around, TWO))
    deciding.write(*leaderships.leave_directories(deciding.around, ONE, {b"\1" * 16}))
    partition = deciding.image.topics_by_name["t"].partitions[0]
    assert (partition.leader, partition.isr, partition.elr) == (-1, (), (ONE,))


def test_only_what_nobody_leads_is_led_by_who_comes_back() -> None:
    deciding = Deciding(brokers=2)
    deciding.create("alone", 1)
    alone = deciding.image.topics_by_name["alone"].partitions[0].leader
    deciding.heartbeat(alone, want_fence=True)
    assert deciding.image.topics_by_name["alone"].partitions[0].leader == -1
    other = TWO if alone == ONE else ONE
    assert leaderships.come_back(deciding.around, other) == []
    changes = leaderships.come_back(deciding.around, alone)
    assert [change.leader for change in changes] == [alone]


def test_a_broker_that_is_forgotten_leaves_the_elr_too() -> None:
    deciding = Deciding(features={"eligible.leader.replicas.version": 1})
    deciding.create("t", 1)
    deciding.write(*leaderships.leave(deciding.around, ONE))
    assert deciding.image.topics_by_name["t"].partitions[0].elr == (ONE,)
    assert leaderships.forget(deciding.around, ONE) == []  # Nobody else could take its place.
    deciding.write(*leaderships.lose(deciding.around, ONE))
    assert deciding.image.topics_by_name["t"].partitions[0].elr == ()


def test_the_minimum_of_in_sync_replicas_is_the_topics_own() -> None:
    deciding = Deciding(brokers=3, features={"eligible.leader.replicas.version": 1})
    deciding.create("t", 1, 3, min_insync_replicas="2")
    partition = deciding.image.topics_by_name["t"].partitions[0]
    for node in partition.replicas[1:]:
        deciding.write(*leaderships.leave(deciding.around, node))
    after = deciding.image.topics_by_name["t"].partitions[0]
    assert after.isr == (partition.leader,)
    assert after.elr == (partition.replicas[2],)  # The first to go left enough behind.
