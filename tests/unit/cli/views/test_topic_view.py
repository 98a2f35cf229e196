"""Output of `ottla topics describe`."""

import json

import pytest

from ottla.cli.views.topic_view import describe_topics
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages import describe_configs
from tests.unit.client.fake_broker import World


def world_with_configs() -> World:
    world = World()
    configs = [
        describe_configs.DescribeConfigsResourceResult("retention.ms", "5", config_source=1),
        describe_configs.DescribeConfigsResourceResult("segment.ms", "6", config_source=5),
    ]
    world.broker.always[ApiKey.DESCRIBE_CONFIGS] = lambda request, version: (
        describe_configs.Response(0, [describe_configs.DescribeConfigsResult(configs=configs)])
    )
    world.broker.topics["t"] = 2
    world.broker.end["t", 1] = 7
    return world


def test_offsets_and_the_topics_own_configs_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    world = world_with_configs()

    async def work() -> None:
        await describe_topics(world.cluster(), ["t"], as_json=True)
        await describe_topics(world.cluster(), ["t"], as_json=False)

    world.run(work)
    line, *table = capsys.readouterr().out.splitlines()
    (topic,) = json.loads(line)
    assert topic["configs"] == {"retention.ms": "5"}
    assert [(row["start_offset"], row["end_offset"]) for row in topic["partitions"]] == [
        (0, 0),
        (0, 7),
    ]
    assert "2 partitions" in table[0]
    assert not any("segment.ms" in row for row in table)


def test_a_partition_without_a_leader_is_shown_without_offsets(
    capsys: pytest.CaptureFixture[str],
) -> None:
    world = world_with_configs()
    world.broker.leaders["t", 0] = -1

    async def work() -> None:
        await describe_topics(world.cluster(), ["t"], as_json=True)

    world.run(work)
    first, second = json.loads(capsys.readouterr().out)[0]["partitions"]
    assert (first["leader"], first["end_offset"]) == (-1, -1)
    assert second["end_offset"] == 7
