"""Plans in Kafka's form, and how they are carried out."""

import json

import pytest

from ottla.cli.tasks.client_options import Misuse
from ottla.cli.tasks.reassign import Manner, cancel, list_moves, parse_plan, reassign, reassign_as
from ottla.client.errors import ClientError
from ottla.model.types import NodeId, TopicPartition
from ottla.protocol.apis import ApiKey, request_class
from ottla.protocol.messages import alter_partition_reassignments as move_wire
from tests.unit.cli.cluster_world import ClusterWorld

ALTER = ApiKey.ALTER_PARTITION_REASSIGNMENTS
DRY = Manner(is_dry=True, as_json=True)


def world_that_moves() -> ClusterWorld:
    world = ClusterWorld()
    world.broker.ranges[ALTER] = request_class(ALTER).VERSIONS

    def alter(request: move_wire.Request, version: int) -> move_wire.Response:
        return move_wire.Response()

    world.broker.always[ALTER] = alter
    return world


def test_a_plan_of_kafkas_tool_is_read() -> None:
    row = {"topic": "t", "partition": 1, "replicas": [2, 1], "log_dirs": ["any", "any"]}
    assert parse_plan(json.dumps({"version": 1, "partitions": [row]}), "f") == {
        TopicPartition("t", 1): [2, 1]
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "expected"),
        ('{"partitions": []}', "names no partition"),
        ('{"partitions": [{"topic": "t", "partition": 0}]}', "expected"),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1]},'
            '{"topic": "t", "partition": 0, "replicas": [2]}]}',
            "t-0 is named twice",
        ),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1], "log_dirs": ["/a"]}]}',
            "log_dirs",
        ),
    ],
)
def test_a_wrong_plan_is_refused_by_the_name_of_its_file(text: str, words: str) -> None:
    with pytest.raises(Misuse, match=f"plan.json: .*{words}"):
        parse_plan(text, "plan.json")


def test_a_dry_run_prints_the_plan_and_the_way_back(capsys: pytest.CaptureFixture[str]) -> None:
    world = world_that_moves()
    world.run(lambda: reassign(world.cluster(), ["t:2"], [1, 2], DRY))
    shown = json.loads(capsys.readouterr().out)
    assert shown["partitions"] == [{"topic": "t", "partition": 2, "replicas": [1, 2]}]
    assert shown["before"]["partitions"] == [{"topic": "t", "partition": 2, "replicas": [3, 1]}]
    assert not world.broker.count(ALTER)


def test_a_broker_that_does_not_run_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    world = world_that_moves()
    plan = {TopicPartition("t", 0): [NodeId(1), NodeId(3)]}
    world.run(lambda: reassign_as(world.cluster(), plan, Manner(waits=False)))
    assert "broker 3 does not run" in capsys.readouterr().err
    assert world.broker.count(ALTER) == 1


def test_a_broker_that_is_not_registered_is_refused() -> None:
    world = world_that_moves()

    async def work() -> None:
        with pytest.raises(ClientError, match="no broker 9: those registered are 3, 1, 2"):
            await reassign(world.cluster(), ["t"], [1, 9], DRY)

    world.run(work)


def test_moves_show_how_much_is_copied(capsys: pytest.CaptureFixture[str]) -> None:
    world = world_that_moves()
    world.run(lambda: list_moves(world.cluster(), as_json=True))
    (move,) = json.loads(capsys.readouterr().out)
    assert (move["adding"], move["bytes_copied"], move["bytes"]) == ([4], 0, 1500)


def test_only_moves_of_the_named_partitions_are_cancelled(
    capsys: pytest.CaptureFixture[str],
) -> None:
    world = world_that_moves()

    async def work() -> None:
        await cancel(world.cluster(), ["t:1"], as_json=False)
        assert not world.broker.count(ALTER)
        await cancel(world.cluster(), ["t:0"], as_json=False)

    world.run(work)
    assert capsys.readouterr().out == "0 moves cancelled.\n1 move cancelled.\n"
    assert world.broker.requests[-1][2].topics[0].partitions[0].replicas is None
