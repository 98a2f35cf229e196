"""From a handler to a group's machine and back."""

from functools import partial
from typing import Any

import pytest

from ottla.broker.coordinators.group_requests import SUBMIT_US, gather
from ottla.broker.machines.answer import Answer, refused
from ottla.broker.wire.batch_scans import TURN_US
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.messages import (
    consumer_group_describe,
    describe_groups,
    heartbeat,
    join_group,
)
from tests.unit.broker.grouping import QUICK, find, stable
from tests.unit.broker.serving import serving
from tests.unit.groups.driving import GROUP, joining


def test_answers_are_gathered_in_the_order_of_the_asking() -> None:
    first: Answer[str] = Answer()
    third: Answer[str] = Answer()
    second = refused(Refusal(ErrorCode.NOT_COORDINATOR))
    gathered: list[list[Any]] = []
    with serving() as world:
        gather([lambda: first, lambda: second, lambda: third], gathered.append, world.broker)
    third.give("third")
    assert gathered == []
    first.give("first")
    assert gathered == [[first, second, third]]


def test_asking_nobody_is_answered_at_once() -> None:
    gathered: list[list[Any]] = []
    with serving() as world:
        gather([], gathered.append, world.broker)
    assert gathered == [[]]


def test_many_machines_are_asked_in_several_turns() -> None:
    asked: list[int] = []

    def submit(number: int) -> Answer[int]:
        asked.append(number)
        answer: Answer[int] = Answer()
        answer.give(number)
        return answer

    gathered: list[list[Answer[int]]] = []
    with serving() as world:
        count = 3 * TURN_US // SUBMIT_US
        gather([partial(submit, number) for number in range(count)], gathered.append, world.broker)
        world.end_turn()
        assert len(asked) <= 2 * TURN_US // SUBMIT_US
        world.settle()
    assert [[one.result() for one in answers] for answers in gathered] == [list(range(count))]


def test_a_group_that_is_named_twice_is_described_once() -> None:
    with serving(**QUICK) as world:
        find(world)
        stable(world)
        client = world.client()
        (described,) = client.ask(describe_groups.Request([GROUP, GROUP])).groups
        assert (described.group_id, described.error_code) == (GROUP, 0)
        request = consumer_group_describe.Request([GROUP, GROUP])
        assert [group.group_id for group in client.ask(request).groups] == [GROUP]


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
        machine = world.broker.groups._machines[world.broker.groups.partition_of(GROUP)]
        (member,) = machine._machine.groups[GROUP].members.values()  # type: ignore[attr-defined]
        assert (member.client_id, member.client_host) == ("test", "/client")
        beat = heartbeat.Request("", 1, "m")
        assert world.client().ask(beat).error_code == ErrorCode.INVALID_GROUP_ID


def test_an_answer_that_cannot_be_encoded_costs_its_connection_and_not_the_coordinator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def submit(_group: str, _command: object) -> Answer[join_group.Response]:
        answer: Answer[join_group.Response] = Answer()
        answer.give(join_group.Response(member_id="x" * 40_000))
        return answer

    with serving(**QUICK | {"offsets_topic_num_partitions": 1}) as world:
        client, generation, member = stable(world)
        other = world.client()
        with monkeypatch.context() as patched:
            patched.setattr(world.broker.groups, "submit", submit)
            other.send(joining(group="other"), 5)
        world.end_turn()
        assert not other.channel.is_open
        beat = heartbeat.Request(GROUP, generation, member)
        assert client.ask(beat).error_code == 0
