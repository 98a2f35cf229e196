"""From a handler to a group's machine and back."""

from collections.abc import Callable
from typing import Any

from ottla.broker.group_requests import gather
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.messages import heartbeat
from tests.unit.broker.grouping import QUICK, find, stable
from tests.unit.broker.serving import serving
from tests.unit.groups.driving import GROUP, joining


def test_answers_are_gathered_in_the_order_of_the_asking() -> None:
    waiting: list[Callable[[Any], None]] = []

    def refuse(_: Callable[[Any], None]) -> None:
        raise Refusal(ErrorCode.NOT_COORDINATOR)

    gathered: list[list[Any]] = []
    gather([waiting.append, refuse, waiting.append], gathered.append)
    waiting[1]("third")
    assert gathered == []
    waiting[0]("first")
    ((first, second, third),) = gathered
    assert (first, second.code, third) == ("first", ErrorCode.NOT_COORDINATOR, "third")


def test_asking_nobody_is_answered_at_once() -> None:
    gathered: list[list[Any]] = []
    gather([], gathered.append)
    assert gathered == [[]]


def test_a_client_that_went_away_is_not_answered() -> None:
    with serving(**QUICK) as world:
        find(world)
        client, generation, member = stable(world)
        other = world.client()
        waiting = other.send(joining(other.ask(joining()).member_id))
        world.end_turn()
        assert not other.has_answer(waiting)
        other.close()
        assert client.ask(joining(member)).generation_id == generation + 1


def test_a_member_is_shown_with_its_name_and_address() -> None:
    with serving(**QUICK) as world:
        stable(world)
        machine = world.broker.groups._machine(world.broker.groups.partition_of(GROUP))
        (member,) = machine._machine.groups[GROUP].members.values()  # type: ignore[attr-defined]
        assert (member.client_id, member.client_host) == ("test", "/client")
        beat = heartbeat.Request("", 1, "m")
        assert world.client().ask(beat).error_code == ErrorCode.INVALID_GROUP_ID
