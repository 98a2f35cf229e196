import asyncio
from random import Random
from unittest.mock import Mock

from ottla.client.protocol import Request
from ottla.model.types import TopicPartition
from ottla.protocol.messages import join_group
from ottla.simulation.clients.classic_member import ClassicMember, decode_places, encode_places
from ottla.simulation.history.group_history import GroupHistory
from ottla.simulation.plans.group_plan import Kind
from ottla.simulation.runs.run import World, simulate
from tests.unit.simulation.small import group_plan


def test_an_assignment_is_as_consumers_write_it() -> None:
    places = [TopicPartition("a", 0), TopicPartition("a", 2), TopicPartition("b", 1)]
    assert decode_places(encode_places(places)) == places


def test_members_share_all_partitions_and_commit_what_they_read() -> None:
    worlds: list[World] = []
    simulate(4, group_plan(4, kinds=(Kind.CLASSIC,)), arrange=worlds.append)
    history = worlds[0].group_history
    assert history.commits > 10
    assert history.refusals > 0, "some say something in a generation that is over"


def test_the_client_of_the_house_is_a_member_too() -> None:
    report = simulate(5, group_plan(5, kinds=(Kind.CLIENT,)))
    assert report.commits > 0


class JoiningMember(ClassicMember):
    """Its coordinator lets everyone in."""

    async def ask(self, request: Request, *_: object) -> join_group.Response:  # type: ignore[override]
        assert isinstance(request, join_group.Request)
        return join_group.Response(member_id=request.member_id or "new", generation_id=1)


def test_a_static_member_without_an_id_takes_over_and_one_with_an_id_does_not() -> None:
    history = GroupHistory(lambda: 0)
    plan = group_plan(4, kinds=(Kind.CLASSIC,)).groups[0]
    first, second = (
        JoiningMember(plan, name, "instance", [], cluster=Mock(), history=history, chance=Random(0))
        for name in ("first", "second")
    )
    asyncio.run(second._join())
    asyncio.run(first._join())
    assert (first.standing.is_replaced, second.standing.is_replaced) == (False, True)
    asyncio.run(second._join())
    assert (first.standing.is_replaced, second.standing.is_replaced) == (False, True)
