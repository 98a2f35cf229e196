"""Expressions that cannot hold up a broker."""

from collections.abc import Callable

import pytest

from ottla.broker.coordinators.expressions import (
    EXPRESSION_WEIGHT,
    TURN_MS,
    UNICODE_CLASSES_MAX,
    Expressions,
)
from ottla.groups.topics import BadExpression
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Monotonic
from ottla.protocol.messages import consumer_group_heartbeat as heartbeat
from tests.cpu import cpu_seconds
from tests.unit.broker.grouping import QUICK, find
from tests.unit.broker.serving import World, serving


class Turns:
    """A clock that every look at it moves on, and the ends of turns."""

    def __init__(self, ms_per_look: int = 0, kept_max: int = 100_000) -> None:
        self.now, self.ms_per_look = 0, ms_per_look
        self.soon: list[Callable[[], None]] = []
        self.expressions = Expressions(self._look, self.soon.append, kept_max)

    def _look(self) -> Monotonic:
        self.now += self.ms_per_look
        return Monotonic(self.now)

    def end(self) -> None:
        callbacks, self.soon[:] = list(self.soon), []
        for callback in callbacks:
            callback()


def test_an_expression_matches_whole_names() -> None:
    matches = Turns().expressions.compile("orders-(eu|us)")
    assert matches("orders-eu")
    assert not matches("my-orders-eu")
    assert not matches("orders-europe")


def test_a_bad_expression_says_why() -> None:
    with pytest.raises(BadExpression, match="missing"):
        Turns().expressions.compile("(")


def test_an_expression_that_would_blow_up_does_not() -> None:
    matches = Turns().expressions.compile("(a*)*b")
    assert not matches("a" * 249)
    assert cpu_seconds(lambda: matches("a" * 249)) < 1


@pytest.mark.parametrize(
    "text",
    [
        r"\pL{300}",
        "((a?){1000}){5}",
        r"(?i)" + r"\PL" * (UNICODE_CLASSES_MAX + 1),
        "x" * 8193,
        r"(\pL?){200}",
    ],
)
def test_an_expression_too_large_is_refused_before_it_costs_much(text: str) -> None:
    Turns().expressions.compile("warm")  # Without the import.

    def refuse() -> None:
        with pytest.raises(BadExpression):
            Turns().expressions.compile(text)

    assert cpu_seconds(refuse) < 0.05


def test_a_list_of_topics_is_not_too_large() -> None:
    names = [f"{'some.department.topic'[number % 7 :]}-{number}" for number in range(150)]
    matches = Turns().expressions.compile("|".join(names))
    assert all(matches(name) for name in names)
    assert not matches("other")


def test_what_takes_longer_than_its_part_of_a_turn_goes_on_in_later_ones() -> None:
    turns = Turns(ms_per_look=1)
    names = [f"t{number}" for number in range(25)]
    refused: list[ErrorCode] = []
    while len(refused) < 10:
        try:
            matches = turns.expressions.compile("t.*")
            found = [name for name in names if matches(name)]
            break
        except Refusal as refusal:
            refused.append(refusal.code)
            turns.end()
    assert found == names
    assert refused == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * (26 // TURN_MS)


def test_many_expressions_in_one_turn_are_refused_until_the_next() -> None:
    turns = Turns(ms_per_look=TURN_MS)
    turns.expressions.compile("a")
    with pytest.raises(Refusal):
        turns.expressions.compile("b")
    turns.expressions.compile("a")  # It is known already.
    turns.end()
    turns.expressions.compile("b")


def test_what_is_kept_is_bounded() -> None:
    turns = Turns(kept_max=5 * EXPRESSION_WEIGHT + 60)
    for number in range(50):
        matches = turns.expressions.compile(f"t{number}.*")
        assert [matches(f"t{n}") for n in range(20)].count(True) > 0 or number >= 20
    kept = turns.expressions._kept
    assert len(kept) in (4, 5)
    assert "t49.*" in kept
    assert sum(EXPRESSION_WEIGHT + len(one.found) for one in kept.values()) == (
        turns.expressions._count
    )


def subscribe(world: World, member: str, expression: str) -> int:
    request = heartbeat.Request(
        "g",
        member,
        0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_regex=expression,
        topic_partitions=[],
    )
    code: int = world.client().ask(request, 1).error_code
    return code


def test_members_subscribe_by_expression_to_a_broker() -> None:
    with serving(**QUICK) as world:
        world.topic("t")
        find(world, "g")
        assert subscribe(world, "a", "t.*") == 0
        assert subscribe(world, "b", r"\pL{300}") == ErrorCode.INVALID_REGULAR_EXPRESSION
