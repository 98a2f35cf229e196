"""Output of `ottla groups`."""

import json

import pytest

from ottla.cli.views.group_view import describe_groups, duration_text, list_groups, total
from ottla.client.groups import UnknownGroup
from ottla.client.lag import Lag
from ottla.model.types import TopicPartition
from ottla.protocol.consumer_protocol import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    encode_versioned,
)
from ottla.protocol.messages.describe_groups import DescribedGroupMember
from ottla.records.record import Record, build_batch
from tests.unit.client.fake_broker import World
from tests.unit.client.fake_coordinator import world_with_groups

FIRST = TopicPartition("t", 0)


def write(world: World, age_ms: int, count: int) -> None:
    stamp = world.clock.wall() - age_ms
    records = [Record(index, stamp, None, b"v") for index in range(count)]
    world.broker.log[FIRST] += build_batch(records)
    world.broker.end[FIRST] += count


def test_a_group_is_described_with_lag_in_records_and_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    world, coordinator = world_with_groups()
    write(world, 65_000, 5)
    coordinator.states["g"] = "Stable"
    coordinator.offsets["g"] = {FIRST: 2}
    data = encode_versioned(ConsumerProtocolAssignment([AssignmentTopicPartition("t", [0])]), 1)
    coordinator.members = [DescribedGroupMember("m1", None, "app", "/10.0.0.1", b"", data)]

    async def work() -> None:
        await describe_groups(world.cluster(), ["g"], as_json=True)
        await describe_groups(world.cluster(), ["g"], as_json=False)

    world.run(work)
    line, _, table = capsys.readouterr().out.partition("\n")
    (told,) = json.loads(line)
    assert (told["state"], told["type"], told["lag_records"]) == ("Stable", "classic", 3)
    assert 65 <= told["lag_seconds"] < 66
    (row,) = told["partitions"]
    assert (row["committed_offset"], row["end_offset"], row["member_id"]) == (2, 5, "m1")
    assert told["members"][0]["assignment"] == {"t": [0]}
    assert "Behind by 3 records, 1 min 5 s" in table
    assert "1 member, coordinator 1" in table
    assert "t-0" in table


def test_a_missing_group_is_reported() -> None:
    world, _ = world_with_groups()

    async def work() -> None:
        with pytest.raises(UnknownGroup):
            await describe_groups(world.cluster(), ["g"], as_json=False)

    world.run(work)


def test_groups_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    world, coordinator = world_with_groups()

    async def work() -> None:
        await list_groups(world.cluster(), [], [], as_json=False)
        coordinator.states.update(a="Empty", b="Stable")
        await list_groups(world.cluster(), [], [], as_json=True)
        await list_groups(world.cluster(), [], [], as_json=False)

    world.run(work)
    none, listed, *table = capsys.readouterr().out.splitlines()
    assert none == "There are no groups yet."
    assert [item["state"] for item in json.loads(listed)] == ["Empty", "Stable"]
    assert "classic" in table[2]


def test_total_lag_is_the_sum_of_records_and_the_longest_time() -> None:
    assert total([Lag(0, 9, 4, 1000), Lag(0, 9, 5, 3000), Lag()]) == (9, 3000)
    assert total([Lag()]) == (None, None)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0, "0 s"),
        (0.24, "0.2 s"),
        (42.4, "42 s"),
        (125, "2 min 5 s"),
        (7300, "2 h 1 min"),
        (200_000, "2 d 7 h"),
    ],
)
def test_durations_have_about_two_digits(seconds: float | None, text: str) -> None:
    assert duration_text(seconds) == text
