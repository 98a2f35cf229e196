import pytest

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Monotonic
from ottla.replication.replica import Replica


def at(now: int) -> Monotonic:
    return Monotonic(now)


def test_a_replica_that_asks_for_our_end_has_all() -> None:
    replica = Replica()
    replica.fetched(10, our_end=10, broker_epoch=1, now=at(100))
    assert replica.end == 10
    assert replica.is_caught_up(10, 5, at(9_999))  # Nothing new came: it cannot lag.
    assert replica.is_caught_up(11, 5, at(105))
    assert not replica.is_caught_up(11, 5, at(106))


def test_reaching_an_earlier_end_proves_that_it_had_all_at_that_time() -> None:
    replica = Replica()
    replica.fetched(5, our_end=10, broker_epoch=1, now=at(100))
    assert not replica.is_caught_up(10, 50, at(100))
    replica.fetched(10, our_end=20, broker_epoch=1, now=at(130))
    assert replica.caught_up_at == 100
    replica.fetched(15, our_end=30, broker_epoch=1, now=at(160))
    assert replica.caught_up_at == 100  # It falls behind for good.


def test_an_earlier_process_of_a_broker_proves_nothing() -> None:
    replica = Replica()
    replica.fetched(3, our_end=10, broker_epoch=7, now=at(100))
    with pytest.raises(Refusal) as refused:
        replica.fetched(10, our_end=10, broker_epoch=6, now=at(101))
    assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert replica.end == 3
    replica.fetched(1, our_end=10, broker_epoch=8, now=at(102))
    assert (replica.end, replica.broker_epoch) == (1, 8)


def test_a_new_epoch_of_the_same_leader_gives_everyone_in_sync_time() -> None:
    replica = Replica()
    replica.fetched(3, our_end=10, broker_epoch=7, now=at(100))
    replica.epoch_begun(10, at(500), is_in_isr=True)
    assert replica.is_caught_up(12, 30, at(530))
    replica.epoch_begun(10, at(500), is_in_isr=False)
    assert not replica.is_caught_up(12, 30, at(500))
