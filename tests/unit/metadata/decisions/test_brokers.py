import pytest

from ottla.metadata.decisions import leaderships
from ottla.metadata.decisions.brokers import Died, check_epoch
from ottla.metadata.image.cluster import Partition
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import NodeId
from ottla.protocol import metadata_records as records
from ottla.protocol.messages import broker_heartbeat, broker_registration, unregister_broker
from tests.unit.metadata.controller_driver import NOW, ControllerDriver

ONE, TWO, THREE = NodeId(1), NodeId(2), NodeId(3)
ELR = {"eligible.leader.replicas.version": 1}


def leaders(deciding: ControllerDriver, topic: str = "t") -> set[int]:
    return {p.leader for p in deciding.image.topics_by_name[topic].partitions.values()}


def test_broker_epoch_is_the_offset_of_its_registration() -> None:
    deciding = ControllerDriver(brokers=0)
    epoch = deciding.register(1)
    assert epoch == deciding.image.offset
    assert deciding.image.brokers[ONE].is_fenced


def test_a_broker_is_unfenced_once_it_has_read_its_registration() -> None:
    deciding = ControllerDriver(brokers=0)
    deciding.register(1)
    stale = deciding.ask(broker_heartbeat.Request(1, deciding.epochs[1], 0))
    assert not stale.is_caught_up
    assert stale.is_fenced
    assert not deciding.heartbeat(1).is_fenced
    assert deciding.image.brokers[ONE].is_active


def test_registering_the_same_incarnation_again_keeps_its_state() -> None:
    deciding = ControllerDriver()
    before = deciding.image.brokers[ONE]
    epoch = deciding.register(1, incarnation_id=before.incarnation_id, rack="r")
    after = deciding.image.brokers[ONE]
    assert epoch == before.epoch
    assert (after.rack, after.is_fenced) == ("r", False)


def test_a_restarted_broker_leads_again_in_a_new_epoch() -> None:
    """As in Kafka: first without a leader, then elected again, so the epoch grows by two."""
    deciding = ControllerDriver()
    deciding.create("t", 3)
    deciding.register(1)
    assert leaders(deciding) == {-1}
    deciding.heartbeat(1)
    assert leaders(deciding) == {1}
    assert deciding.image.topics_by_name["t"].partitions[0].leader_epoch == 2


def test_with_elr_an_unclean_restart_is_led_by_the_last_known_leader() -> None:
    deciding = ControllerDriver(features=ELR)
    deciding.create("t")
    deciding.register(1)
    partition = deciding.image.topics_by_name["t"].partitions[0]
    assert (partition.isr, partition.elr, partition.last_known_elr) == ((), (), (ONE,))
    deciding.heartbeat(1)
    partition = deciding.image.topics_by_name["t"].partitions[0]
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (1, (ONE,), 1)


def test_with_elr_a_clean_restart_is_recognised_by_its_previous_epoch() -> None:
    deciding = ControllerDriver(features=ELR)
    deciding.create("t")
    deciding.register(1, previous_broker_epoch=deciding.epochs[1])
    assert deciding.image.topics_by_name["t"].partitions[0].elr == (ONE,)
    deciding.heartbeat(1)
    partition = deciding.image.topics_by_name["t"].partitions[0]
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (1, (ONE,), 0)


def test_a_controlled_shutdown_is_announced_then_hands_over_and_then_lets_go() -> None:
    deciding = ControllerDriver(brokers=2)
    deciding.create("t", 4, 2)
    for _ in range(2):  # Not before the other one has read that this one stops.
        first = deciding.heartbeat(2, want_shut_down=True)
        assert (first.is_fenced, first.should_shut_down) == (False, False)
        assert leaders(deciding) == {1, 2}
        assert deciding.image.brokers[TWO].in_controlled_shutdown
    deciding.heartbeat(1)
    for _ in range(2):  # Not before the other one has read that it leads now.
        assert not deciding.heartbeat(2, want_shut_down=True).should_shut_down
        assert leaders(deciding) == {1}
    deciding.heartbeat(1)
    last = deciding.heartbeat(2, want_shut_down=True)
    assert (last.is_fenced, last.should_shut_down) == (True, True)


@pytest.mark.parametrize("stopping", [TWO, THREE])
def test_a_stopping_broker_is_replaced_by_one_that_was_heard_since_it_asked(
    stopping: NodeId,
) -> None:
    """The other one may have lost power a moment ago, and what it had in memory."""
    deciding = ControllerDriver(brokers=3)
    deciding.create("t", 1, 3, min_insync_replicas="1")
    deciding.heartbeat(stopping, want_shut_down=True)
    deciding.heartbeat(stopping, want_shut_down=True)
    assert len(partition_of(deciding).isr) == 3
    [other] = {TWO, THREE} - {stopping}
    deciding.heartbeat(other)
    deciding.heartbeat(stopping, want_shut_down=True)
    assert stopping not in partition_of(deciding).isr
    assert partition_of(deciding).leader in (ONE, other)
    if partition_of(deciding).leader != ONE:  # It led before.
        return
    deciding.heartbeat(ONE, want_shut_down=True)
    deciding.heartbeat(other)
    deciding.heartbeat(ONE, want_shut_down=True)
    assert partition_of(deciding).leader == other


def test_a_stop_waits_no_longer_than_for_the_session_of_the_last_other_replica() -> None:
    deciding = ControllerDriver(brokers=2, features=ELR)
    deciding.create("t", 1, 2, min_insync_replicas="1")
    deciding.heartbeat(1, want_shut_down=True)
    deciding.heartbeat(1, 9_000, want_shut_down=True)
    assert set(partition_of(deciding).isr) == {1, 2}
    deciding.tick(10_000)
    assert partition_of(deciding).isr == (1,)
    for _ in range(2):
        last = deciding.heartbeat(1, 10_000, want_shut_down=True)
    assert last.should_shut_down
    assert (partition_of(deciding).isr, partition_of(deciding).elr) == ((), (1,))


def test_a_partition_whose_replicas_all_lost_power_during_a_stop_is_led_again() -> None:
    deciding = ControllerDriver(brokers=2, features=ELR)
    deciding.create("t", 1, 2)
    deciding.heartbeat(2, want_shut_down=True)
    deciding.fail_over()
    deciding.register(1)
    assert (partition_of(deciding).leader, partition_of(deciding).isr) == (-1, (2,))
    deciding.tick(10_000)
    deciding.register(2)
    deciding.heartbeat(1)
    assert partition_of(deciding).leader == -1
    deciding.heartbeat(2)
    assert partition_of(deciding).leader == 2


def test_a_new_controller_goes_on_with_a_stop_once_another_broker_was_heard() -> None:
    deciding = ControllerDriver(brokers=3)
    deciding.create("t", 1, 3)
    deciding.heartbeat(3, want_shut_down=True)
    deciding.fail_over()
    deciding.heartbeat(3, want_shut_down=True)
    assert len(partition_of(deciding).isr) == 3
    deciding.heartbeat(2)
    deciding.heartbeat(3, want_shut_down=True)
    assert set(partition_of(deciding).isr) == {1, 2}


def test_a_broker_without_partitions_may_stop_at_once() -> None:
    deciding = ControllerDriver()
    response = deciding.heartbeat(1, want_shut_down=True)
    assert (response.is_fenced, response.should_shut_down) == (True, True)


def test_a_broker_may_ask_to_be_fenced() -> None:
    deciding = ControllerDriver(brokers=2)
    assert deciding.heartbeat(2, want_fence=True).is_fenced
    assert deciding.heartbeat(2, want_fence=True).is_fenced


def test_a_lost_disk_affects_only_its_partitions() -> None:
    deciding = ControllerDriver(brokers=1)
    disks = [b"a" * 16, b"b" * 16]
    deciding.register(1, log_dirs=disks)
    deciding.heartbeat(1)
    deciding.create("t", 2)
    topic = deciding.image.topics_by_name["t"].id
    for index, disk in enumerate(disks):
        deciding.write(
            records.PartitionChangeRecord(partition_id=index, topic_id=topic, directories=[disk])
        )
    deciding.heartbeat(1, offline_log_dirs=[disks[0]])
    partitions = deciding.image.topics_by_name["t"].partitions
    assert [partitions[index].leader for index in (0, 1)] == [-1, 1]
    assert deciding.image.brokers[ONE].directories == (disks[1],)


def test_a_broker_that_returns_without_a_disk_does_not_lead_its_replicas() -> None:
    deciding = ControllerDriver()
    deciding.create("t")
    (disk,) = deciding.image.topics_by_name["t"].partitions[0].directories
    deciding.register(1, log_dirs=[b"n" * 16])
    deciding.heartbeat(1)
    assert leaders(deciding) == {-1}
    deciding.register(1, log_dirs=[b"n" * 16, disk])
    deciding.heartbeat(1)
    assert leaders(deciding) == {1}


def test_a_silent_broker_is_fenced_when_its_session_ends() -> None:
    deciding = ControllerDriver(brokers=2)
    deciding.create("t", 4, 2)
    assert deciding.tick(9_999) == []
    deciding.tick(10_000)
    assert deciding.image.brokers[TWO].is_fenced
    assert leaders(deciding) == {1}
    assert not deciding.image.brokers[ONE].is_fenced  # It is the controller's own.


def test_a_broker_that_is_known_to_be_dead_is_fenced_at_once() -> None:
    deciding = ControllerDriver(brokers=2)
    deciding.create("t", 4, 2)
    deciding.ask(Died(TWO, 99))  # Another incarnation than the live one.
    assert not deciding.image.brokers[TWO].is_fenced
    deciding.ask(Died(TWO, deciding.epochs[2]))
    assert deciding.image.brokers[TWO].is_fenced
    assert leaders(deciding) == {1}
    deciding.register(2)  # Its next incarnation does not wait for the session.
    assert deciding.decide(Died(TWO, deciding.epochs[2] - 1))[1] == []


def test_a_new_controller_fences_no_broker_in_favour_of_brokers_without_contact() -> None:
    """They may have lost power, and with it records that only the dead one has on disk."""
    deciding = ControllerDriver(brokers=3)
    deciding.create("t", 1, 3)
    deciding.fail_over()
    refusal = deciding.ask(Died(THREE, deciding.epochs[3]))
    assert isinstance(refusal, Refusal)
    assert refusal.code == ErrorCode.OPERATION_NOT_ATTEMPTED
    assert not deciding.image.brokers[THREE].is_fenced
    deciding.heartbeat(2)
    deciding.ask(Died(THREE, deciding.epochs[3]))
    assert deciding.image.brokers[THREE].is_fenced


def test_no_isr_is_left_to_a_broker_whose_successor_tries_to_register() -> None:
    """Broker 2 lost power, and its session lasts: only broker 1 holds all records."""
    deciding = ControllerDriver(brokers=2)
    deciding.create("t", 1, 2, min_insync_replicas="1")
    deciding.heartbeat(2)
    late = deciding.ask(deciding.registration(2))
    assert late.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert isinstance(deciding.ask(Died(ONE, deciding.epochs[1])), Refusal)
    assert set(partition_of(deciding).isr) == {1, 2}
    deciding.heartbeat(2)  # The registered process lives: the other one has the same id.
    deciding.ask(Died(ONE, deciding.epochs[1]))
    assert partition_of(deciding).isr == (2,)


def test_a_refused_report_of_a_death_leaves_the_session() -> None:
    deciding = after_failover()
    deciding.heartbeat(3)
    assert isinstance(deciding.ask(Died(THREE, deciding.epochs[3])), Refusal)
    deciding.ask(Died(TWO, deciding.epochs[2]))  # In favour of 3, which is still in contact.
    assert set(partition_of(deciding).isr) == {1, 3}


@pytest.mark.parametrize("wish", ["want_shut_down", "want_fence"])
def test_a_new_controller_grants_no_shutdown_in_favour_of_brokers_without_contact(
    wish: str,
) -> None:
    deciding = ControllerDriver(brokers=3)
    deciding.create("t", 3, 3)
    deciding.fail_over()
    answer = deciding.heartbeat(3, **{wish: True})
    assert not answer.should_shut_down
    assert not answer.is_fenced
    assert {len(p.isr) for p in deciding.image.topics_by_name["t"].partitions.values()} == {3}
    deciding.heartbeat(2)
    for _ in range(2):
        deciding.heartbeat(3, **{wish: True})
        deciding.heartbeat(2)
    assert {len(p.isr) for p in deciding.image.topics_by_name["t"].partitions.values()} == {2}


def test_a_new_controller_counts_on_its_own_broker_once_that_has_registered() -> None:
    """This process lost power, and is elected before its broker could say so."""
    deciding = ControllerDriver(brokers=3, features=ELR)
    deciding.create("t", 1, 3, min_insync_replicas="1")
    deciding.fail_over()
    deciding.tick(10_000)
    assert (partition_of(deciding).isr, set(partition_of(deciding).elr)) == ((), {1, 2, 3})
    deciding.register(1)
    assert set(partition_of(deciding).elr) == {2, 3}
    deciding.tick(100_000)
    assert not deciding.heartbeat(1, 100_000).is_fenced
    assert deciding.tick(200_000) == []
    assert partition_of(deciding).leader == -1


def after_failover(elr: int = 1, min_isr: int = 2) -> ControllerDriver:
    """Three brokers in sync on one topic, and a controller that has heard none of them."""
    deciding = ControllerDriver(brokers=3, features={"eligible.leader.replicas.version": elr})
    deciding.create("t", 1, 3, min_insync_replicas=str(min_isr))
    deciding.fail_over()
    return deciding


def partition_of(deciding: ControllerDriver) -> Partition:
    return deciding.image.topics_by_name["t"].partitions[0]


def restart(deciding: ControllerDriver, node: int, *, is_whole: bool = True) -> object:
    """Register a new incarnation of `node`; it serves if that is not refused."""
    previous = deciding.epochs[node] if is_whole else -1
    reply = deciding.ask(deciding.registration(node, previous_broker_epoch=previous), 20_000)
    if not isinstance(reply, Refusal):
        deciding.epochs[node] = reply.broker_epoch
        deciding.heartbeat(node)
    return reply


@pytest.mark.parametrize(("elr", "min_isr"), [(1, 1), (1, 2), (0, 1), (0, 2)])
def test_a_killed_broker_registers_only_after_contact_of_another_in_sync_replica(
    elr: int, min_isr: int
) -> None:
    """The others lost power: the last intact replica would leave the ISR to them."""
    deciding = after_failover(elr, min_isr)
    refusal = restart(deciding, 1)
    assert isinstance(refusal, Refusal)
    assert refusal.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    restart(deciding, 2, is_whole=False)
    assert set(partition_of(deciding).isr) == {1, 3}
    assert isinstance(restart(deciding, 1), Refusal)
    restart(deciding, 3, is_whole=False)
    assert partition_of(deciding).isr == (1,)
    restart(deciding, 1)
    assert (partition_of(deciding).leader, partition_of(deciding).isr) == (1, (1,))


def test_brokers_that_are_killed_together_register_without_waiting_for_a_session() -> None:
    deciding = after_failover()
    assert isinstance(restart(deciding, 1), Refusal)
    for node in (2, 3, 1):
        assert not isinstance(restart(deciding, node), Refusal)
    assert partition_of(deciding).leader in (1, 3)


@pytest.mark.parametrize("elr", [0, 1])
def test_brokers_whose_sessions_end_together_leave_the_isr_together(elr: int) -> None:
    """With ELR all stay eligible; without, the leader stays in the ISR."""
    deciding = after_failover(elr)
    leader = partition_of(deciding).leader
    deciding.controller._sessions.begin(ONE, NOW)  # As with a controller without a broker role.
    deciding.controller._sessions._own = NodeId(9)
    deciding.controller.activated(NOW)
    deciding.tick(NOW + 9_000)
    after = partition_of(deciding)
    assert after.leader == -1
    assert (after.isr, after.elr) == (((), (1, 2, 3)) if elr else ((leader,), ()))
    for node in (2, 3):
        restart(deciding, node, is_whole=False)
    restart(deciding, 1)
    if elr:
        assert partition_of(deciding).leader == 1


def test_without_elr_the_last_leader_stays_in_the_isr_when_all_sessions_end() -> None:
    deciding = after_failover(elr=0)
    before = partition_of(deciding)
    last = before.isr[-1]
    topic_id = deciding.image.topics_by_name["t"].id
    deciding.write(records.PartitionChangeRecord(0, topic_id, leader=last))
    deciding.write(*leaderships.expire(deciding.context, before.isr))
    assert (partition_of(deciding).leader, partition_of(deciding).isr) == (-1, (last,))


def test_a_new_controller_unregisters_no_broker_in_favour_of_brokers_without_contact() -> None:
    deciding = after_failover()
    refusal = deciding.ask(unregister_broker.Request(3))
    assert refusal.code == ErrorCode.REQUEST_TIMED_OUT
    deciding.heartbeat(2)
    assert not isinstance(deciding.ask(unregister_broker.Request(3)), Refusal)


def test_a_refused_unregistration_leaves_the_session() -> None:
    deciding = after_failover()
    deciding.heartbeat(3)
    assert isinstance(deciding.ask(unregister_broker.Request(3)), Refusal)
    deciding.ask(Died(TWO, deciding.epochs[2]))  # In favour of 3, which is still in contact.
    assert set(partition_of(deciding).isr) == {1, 3}
    deciding.heartbeat(1)
    deciding.tick(NOW + 60_000)
    assert deciding.image.brokers[THREE].is_fenced


def test_an_unregistered_broker_that_returns_is_not_trusted() -> None:
    """Its disk is the same, but no registration is left to compare its previous epoch with."""
    deciding = after_failover()
    for node in (1, 2, 3):
        deciding.heartbeat(node)
    for node in (ONE, TWO, THREE):
        deciding.ask(Died(node, deciding.epochs[node]))
    assert partition_of(deciding).elr == (2, 3)
    deciding.ask(unregister_broker.Request(3))
    restart(deciding, 3, is_whole=False)
    assert (partition_of(deciding).leader, partition_of(deciding).elr) == (-1, (2,))


def test_a_failed_directory_takes_effect_after_contact_of_another_in_sync_replica() -> None:
    deciding = after_failover()
    lost = {"offline_log_dirs": [b"\3" * 16]}
    deciding.heartbeat(3, **lost)
    assert set(partition_of(deciding).isr) == {1, 2, 3}
    deciding.heartbeat(2)
    deciding.heartbeat(3, **lost)
    assert set(partition_of(deciding).isr) == {1, 2}


def test_after_a_failover_a_broker_is_unfenced_once_it_has_read_its_registration() -> None:
    deciding = ControllerDriver(brokers=1)
    epoch = deciding.register(2)
    deciding.fail_over()
    assert deciding.ask(broker_heartbeat.Request(2, epoch, epoch - 1)).is_fenced
    assert not deciding.ask(broker_heartbeat.Request(2, epoch, epoch)).is_fenced


def test_another_process_with_the_same_id_has_to_wait_for_the_session() -> None:
    deciding = ControllerDriver(brokers=2)
    refusal = deciding.ask(deciding.registration(2))
    assert refusal.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    deciding.tick(10_000)
    assert deciding.ask(deciding.registration(2), 10_001).broker_epoch > 0


def test_the_successor_of_a_process_does_not_wait_for_its_session() -> None:
    """It found the predecessor's epoch in the directory, which one process at a time locks."""
    deciding = ControllerDriver(brokers=2)
    deciding.create("t", 4, 2)
    known = deciding.epochs[2]
    late = deciding.ask(deciding.registration(2, previous_broker_epoch=known - 1))
    assert late.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    answer = deciding.ask(deciding.registration(2, previous_broker_epoch=known))
    assert answer.broker_epoch > known
    assert deciding.image.brokers[TWO].is_fenced  # Until it has read its registration.
    assert leaders(deciding) == {1}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [b"x" * 16] * 2}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [bytes(16)]}, ErrorCode.INVALID_REGISTRATION),
        # Broker 1 has that directory.
        ({"log_dirs": [b"\1" * 16]}, ErrorCode.INVALID_REGISTRATION),
        (
            {"features": [broker_registration.Feature("metadata.version", 7, 20)]},
            ErrorCode.UNSUPPORTED_VERSION,
        ),
    ],
)
def test_an_invalid_registration_is_refused(change: dict[str, object], code: ErrorCode) -> None:
    deciding = ControllerDriver()
    refusal, written = deciding.decide(deciding.registration(2, **change))
    assert refusal.code == code
    assert not written


def test_a_stale_epoch_is_refused() -> None:
    deciding = ControllerDriver()
    for broker, epoch in ((1, 999), (7, 0)):
        with pytest.raises(Refusal) as refused:
            check_epoch(deciding.image, broker, epoch)
        assert refused.value.code == ErrorCode.STALE_BROKER_EPOCH


def test_an_unregistered_broker_leaves_every_isr() -> None:
    deciding = ControllerDriver(brokers=2)
    deciding.create("t", 2, 2)
    assert deciding.ask(unregister_broker.Request(2)).error_code == 0
    assert TWO not in deciding.image.brokers
    assert {p.isr for p in deciding.image.topics_by_name["t"].partitions.values()} == {(ONE,)}
    assert deciding.ask(unregister_broker.Request(2)).code == ErrorCode.BROKER_ID_NOT_REGISTERED
