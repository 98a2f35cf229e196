"""Chance keeps voters apart, within bounds."""

from random import Random

from ottla.quorum.timing import Timing


def test_waits_stay_within_their_bounds() -> None:
    timing, random = Timing(), Random(1)
    for lost in range(30):
        assert 1000 <= timing.election_timeout(random.randrange) < 2000
        assert 0 <= timing.hint(random.randrange, lost) < 1000
        assert 20 <= timing.backoff(random.randrange, lost) < 1020
        assert 20 <= timing.retry(lost) <= 640


def test_a_first_hint_is_followed_soon_and_later_ones_less_so() -> None:
    timing = Timing()
    assert [timing.hint(lambda span: span - 1, lost) for lost in (0, 1, 2)] == [99, 199, 399]


def test_voters_stand_one_after_the_other_and_by_chance_once_that_failed() -> None:
    timing = Timing()
    assert [timing.turn(lambda _: 0, 0, place) for place in (0, 1, 2)] == [0, 40, 80]
    assert timing.turn(lambda span: span - 1, 0, 0) < 40
    assert [timing.turn(lambda span: span - 1, 1, place) for place in (0, 1)] == [199, 199]
