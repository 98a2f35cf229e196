from ottla.metadata.decisions.sessions import Sessions
from ottla.model.types import Monotonic, NodeId

OWN, OTHER, THIRD = NodeId(1), NodeId(2), NodeId(3)


def test_a_silent_broker_loses_its_session() -> None:
    sessions = Sessions(9000, OWN)
    sessions.touch(OTHER, Monotonic(100))
    assert sessions.is_valid(OTHER, Monotonic(9099))
    assert not sessions.is_valid(OTHER, Monotonic(9100))
    assert sessions.expired(Monotonic(9100)) == [OTHER]


def test_a_new_incarnation_proved_intact_counts_as_contact() -> None:
    sessions = Sessions(9000, OWN)
    assert not sessions.has_contacted(OTHER)
    sessions.proved_intact(OTHER)
    assert sessions.has_contacted(OTHER)
    assert sessions.next_deadline() is None


def test_the_next_deadline_is_the_earliest_session_end() -> None:
    sessions = Sessions(9000, OWN)
    assert sessions.next_deadline() is None
    sessions.touch(OTHER, Monotonic(100))
    sessions.touch(THIRD, Monotonic(50))
    assert sessions.next_deadline() == 9050
    sessions.forget(THIRD)
    assert sessions.next_deadline() == 9100


def test_the_controllers_own_broker_never_expires() -> None:
    sessions = Sessions(9000, OWN)
    sessions.touch(OWN, Monotonic(0))
    assert sessions.next_deadline() is None
    assert not sessions.expired(Monotonic(1_000_000))


def test_a_hand_over_is_known_once_all_others_have_read_it() -> None:
    sessions = Sessions(9_000, NodeId(9))
    one, two, three = NodeId(1), NodeId(2), NodeId(3)
    sessions.handed_over(one, 50)
    sessions.read_to(two, 50)
    sessions.read_to(three, 49)
    assert sessions.is_hand_over_known(one, [two])
    assert not sessions.is_hand_over_known(one, [two, three])
    sessions.read_to(three, 51)
    assert sessions.is_hand_over_known(one, [two, three])
    assert sessions.is_hand_over_known(two, [one, three])  # It led nothing.


def test_silent_for_is_the_time_since_the_last_heartbeat() -> None:
    sessions = Sessions(9_000, NodeId(9))
    sessions.touch(NodeId(1), Monotonic(100))
    assert sessions.silent_for(NodeId(1), Monotonic(350)) == 250
    assert sessions.silent_for(NodeId(2), Monotonic(350)) is None
