from ottla.model.types import TopicPartition
from ottla.simulation.classic_member import decode_places, encode_places
from ottla.simulation.group_plan import Kind
from ottla.simulation.run import World, simulate
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
