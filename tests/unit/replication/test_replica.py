import pytest

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Monotonic
from ottla.replication.replica import Replica


def at(now: int) -> Monotonic:
    return Monotonic(now)


def test_replica_fetching_at_our_end_is_caught_up() -> None:
    replica = Replica()
    replica.fetched(10, our_end=10, broker_epoch=1, now=at(100))
    assert replica.end == 10
    assert replica.is_caught_up(10, 5, at(9_999))  # Nothing new came: it cannot lag.
    assert replica.is_caught_up(11, 5, at(105))
    assert not replica.is_caught_up(11, 5, at(106))


def test_reaching_an_earlier_end_proves_it_was_caught_up_then() -> None:
    replica = Replica()
    replica.fetched(5, our_end=10, broker_epoch=1, now=at(100))
    assert not replica.is_caught_up(10, 50, at(100))
    replica.fetched(10, our_end=20, broker_epoch=1, now=at(130))
    assert replica.caught_up_at == 100
    replica.fetched(15, our_end=30, broker_epoch=1, now=at(160))
    assert replica.caught_up_at == 100  # From now on it only falls behind.


def test_fetch_of_an_earlier_incarnation_is_refused() -> None:
    replica = Replica()
    replica.fetched(3, our_end=10, broker_epoch=7, now=at(100))
    with pytest.raises(Refusal) as refused:
        replica.fetched(10, our_end=10, broker_epoch=6, now=at(101))
    assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert replica.end == 3
    replica.fetched(1, our_end=10, broker_epoch=8, now=at(102))
    assert (replica.end, replica.broker_epoch) == (1, 8)


def test_new_epoch_of_the_same_leader_restarts_the_lag_of_isr_members() -> None:
    replica = Replica()
    replica.fetched(3, our_end=10, broker_epoch=7, now=at(100))
    replica.epoch_begun(10, at(500), is_in_isr=True)
    assert replica.is_caught_up(12, 30, at(530))
    replica.epoch_begun(10, at(500), is_in_isr=False)
    assert not replica.is_caught_up(12, 30, at(500))
