import pytest

from ottla.protocol.messages import create_partitions as wire
from tests.unit.metadata.controller_driver import ControllerDriver

Topic, Assignment = wire.CreatePartitionsTopic, wire.CreatePartitionsAssignment


def grown(count: int, *replicas: list[int]) -> wire.CreatePartitionsTopic:
    return Topic("t", count, [Assignment(r) for r in replicas] if replicas else None)


def test_a_topic_grows_by_partitions_like_those_it_has() -> None:
    deciding = ControllerDriver(brokers=3)
    deciding.create("t", 2, 3)
    before = dict(deciding.image.topics_by_name["t"].partitions)
    assert deciding.ask(wire.Request([grown(5)])).results[0].error_code == 0
    after = deciding.image.topics_by_name["t"].partitions
    assert sorted(after) == [0, 1, 2, 3, 4]
    assert {len(partition.replicas) for partition in after.values()} == {3}
    assert {index: after[index] for index in before} == before


def test_replicas_of_the_new_ones_may_be_given_by_hand() -> None:
    deciding = ControllerDriver(brokers=2)
    deciding.create("t", 1)
    deciding.ask(wire.Request([grown(3, [2], [1])]))
    after = deciding.image.topics_by_name["t"].partitions
    assert [after[index].replicas for index in (1, 2)] == [(2,), (1,)]


def test_validate_only_writes_nothing() -> None:
    deciding = ControllerDriver()
    deciding.create("t")
    response, written = deciding.decide(wire.Request([grown(3)], validate_only=True))
    assert response.results[0].error_code == 0
    assert written == []


@pytest.mark.parametrize(
    ("topics", "code", "sentence"),
    [
        ([grown(2)], 37, "Topic already has 2 partition(s)."),
        ([grown(1)], 37, "The topic t currently has 2 partition(s); 1 would not be an increase."),
        ([Topic("x", 5, None)], 3, None),
        ([grown(4, [1])], 39, "Attempted to add 2 additional partition(s), but only 1"),
        ([Topic("t", 3, [])], 39, "Attempted to add 1 additional partition(s), but only 0"),
        ([grown(3, [7])], 39, "includes broker 7, but no such broker is registered."),
        ([grown(3, [1, 2])], 39, "which have 1 replica(s)."),
        ([grown(3), grown(4)], 42, "Duplicate topic name."),
        ([grown(20_000)], 44, "Excessively large number of partitions per request."),
    ],
)
def test_invalid_requests_get_kafkas_errors(
    topics: list[wire.CreatePartitionsTopic], code: int, sentence: str | None
) -> None:
    deciding = ControllerDriver(brokers=2)
    deciding.create("t", 2)
    response, written = deciding.decide(wire.Request(topics))
    assert [result.error_code for result in response.results] == [code]
    message = response.results[0].error_message
    assert message is None if sentence is None else sentence in message
    assert written == []
