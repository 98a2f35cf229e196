import pytest

from ottla.broker.fetch import sessions as fetch_sessions
from ottla.broker.fetch.sessions import IDLE_MS_MIN, WANTED_BYTES, WANTED_FREE, FetchSessions
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Monotonic
from ottla.protocol.messages import fetch as wire

NOW = Monotonic(1_000)


def sessions(sessions_max: int = 10, existing: int = 0) -> FetchSessions:
    numbers = iter(range(100))
    return FetchSessions(sessions_max, lambda _: next(numbers), lambda: existing)


def request(
    session_id: int, epoch: int, *partitions: int, forget: tuple[int, ...] = ()
) -> wire.Request:
    return wire.Request(
        session_id=session_id,
        session_epoch=epoch,
        topics=[wire.FetchTopic("t", partitions=[wire.FetchPartition(p) for p in partitions])],
        forgotten_topics_data=[wire.ForgottenTopic("t", partitions=list(forget))],
    )


def indexes(wanted: object) -> list[int]:
    return [part.index for part in wanted]  # type: ignore[attr-defined]


def test_a_full_fetch_opens_a_session_that_later_fetches_need_not_repeat() -> None:
    cache = sessions()
    session, wanted, is_full = cache.open(request(0, 0, 1, 2), False, NOW)
    assert (session.id, indexes(wanted), is_full) == (1, [1, 2], True)
    session, wanted, is_full = cache.open(request(1, 1), False, NOW)
    assert (indexes(wanted), is_full) == ([1, 2], False)
    _, wanted, _ = cache.open(request(1, 2, 3, forget=(1,)), False, NOW)
    assert indexes(wanted) == [2, 3]


def test_a_fetch_that_wants_no_session_gets_none() -> None:
    session, wanted, is_full = sessions().open(request(0, -1, 4), False, NOW)
    assert (session.id, indexes(wanted), is_full) == (0, [4], True)


@pytest.mark.parametrize(
    ("session_id", "epoch", "uses_ids", "code"),
    [
        (5, 1, False, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (1, 2, False, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (1, 1, True, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
    ],
)
def test_what_does_not_continue_a_session_is_refused(
    session_id: int, epoch: int, uses_ids: bool, code: ErrorCode
) -> None:
    cache = sessions()
    cache.open(request(0, 0, 1), False, NOW)
    with pytest.raises(Refusal) as refusal:
        cache.open(request(session_id, epoch), uses_ids, NOW)
    assert refusal.value.code is code


def test_a_session_that_wants_nothing_ends() -> None:
    cache = sessions()
    cache.open(request(0, 0, 1), False, NOW)
    session, wanted, _ = cache.open(request(1, 1, forget=(1,)), False, NOW)
    assert (session.id, indexes(wanted), len(cache)) == (0, [], 0)


def test_a_partition_that_gave_data_goes_behind_the_others() -> None:
    cache = sessions()
    session, wanted, _ = cache.open(request(0, 0, 1, 2, 3), False, NOW)
    session.served(next(iter(wanted)))
    _, wanted, _ = cache.open(request(1, 1), False, NOW)
    assert indexes(wanted) == [2, 3, 1]


def test_sessions_are_bounded_and_only_an_idle_one_makes_room() -> None:
    cache = sessions(sessions_max=1)
    assert cache.open(request(0, 0, 1), False, NOW)[0].id == 1
    assert cache.open(request(0, 0, 2), False, NOW)[0].id == 0
    later = Monotonic(NOW + IDLE_MS_MIN)
    assert cache.open(request(0, 0, 2), False, later)[0].id == 2
    assert len(cache) == 1


def test_session_is_granted_only_within_the_bound_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_sessions, "SESSIONS_BYTES_MAX", 10 * WANTED_BYTES)
    cache = sessions()
    first, _, _ = cache.open(request(0, 0, *range(6)), False, NOW)
    refused, wanted, is_full = cache.open(request(0, 0, *range(6)), False, NOW)
    assert (first.id, refused.id, len(wanted), is_full) == (1, 0, 6, True)
    later = Monotonic(NOW + IDLE_MS_MIN)
    assert cache.open(request(0, 0, *range(6)), False, later)[0].id  # In place of the idle one.
    assert len(cache) == 1


def test_session_that_grows_beyond_the_bound_of_bytes_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetch_sessions, "SESSIONS_BYTES_MAX", 10 * WANTED_BYTES)
    cache = sessions()
    session, _, _ = cache.open(request(0, 0, *range(6)), False, NOW)
    cache.open(request(session.id, 1, *range(6, 9), forget=(0, 1, 2)), False, NOW)
    with pytest.raises(Refusal) as refusal:
        cache.open(request(session.id, 2, *range(9, 15)), False, NOW)
    assert refusal.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(cache) == 0
    assert cache.open(request(0, 0, *range(9)), False, NOW)[0].id  # Its bytes are free again.


def test_session_that_exchanges_its_partitions_takes_no_more_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetch_sessions, "SESSIONS_BYTES_MAX", 10 * WANTED_BYTES)
    cache = sessions()
    session, _, _ = cache.open(request(0, 0, 0, 1), False, NOW)
    for epoch in range(1, 20):
        first = 2 * epoch
        asked = request(session.id, epoch, first, first + 1, forget=(first - 2, first - 1))
        assert indexes(cache.open(asked, False, NOW)[1]) == [first, first + 1]


def test_a_session_has_hardly_more_partitions_than_exist() -> None:
    cache = sessions(existing=2)
    most = WANTED_FREE + 2
    session, wanted, _ = cache.open(request(0, 0, *range(most)), False, NOW)
    assert (session.id, len(wanted), len(cache)) == (1, most, 1)
    _, wanted, _ = cache.open(request(1, 1, *range(most)), False, NOW)
    assert len(wanted) == most
    _, wanted, _ = cache.open(request(1, 2, most, forget=(0,)), False, NOW)
    assert len(wanted) == most
    with pytest.raises(Refusal) as refusal:
        cache.open(request(1, 3, most + 1), False, NOW)
    assert refusal.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(cache) == 0
    # One who names them all with each request is served, without a session.
    session, wanted, is_full = cache.open(request(0, 0, *range(most + 1)), False, NOW)
    assert (session.id, len(wanted), is_full, len(cache)) == (0, most + 1, True, 0)
