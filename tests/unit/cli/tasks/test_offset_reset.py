"""New offsets of a reset, and refusals."""

import json
from pathlib import Path

import pytest

from ottla.cli.tasks.client_options import Misuse
from ottla.cli.tasks.offset_reset import Selection, Target, parse_duration, parse_file, reset
from ottla.client.errors import ClientError
from ottla.client.metadata import UnknownPartition
from ottla.model.types import TopicPartition
from tests.unit.client.fake_broker import World
from tests.unit.client.fake_coordinator import FakeCoordinator, world_with_groups

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


def prepared() -> tuple[World, FakeCoordinator]:
    """Two partitions that hold 0 to 99; the group has read 40 of the first."""
    world, coordinator = world_with_groups()
    world.broker.topics["t"] = 2
    world.broker.end.update({FIRST: 100, SECOND: 100})
    coordinator.states["g"] = "Empty"
    coordinator.offsets["g"] = {FIRST: 40}
    return world, coordinator


def run(
    world: World,
    target: Target,
    *topics: str,
    is_executed: bool = True,
    export: bool = False,
    as_json: bool = False,
    group: str = "g",
) -> None:
    is_all = not topics and target.from_file is None

    async def work() -> None:
        await reset(
            world.cluster(),
            group,
            target,
            Selection(list(topics), is_all),
            is_executed=is_executed,
            export=export,
            as_json=as_json,
        )

    world.run(work)


@pytest.mark.parametrize(
    ("target", "topics", "expected"),
    [
        (Target(to_earliest=True), ["t"], {FIRST: 0, SECOND: 0}),
        (Target(to_latest=True), ["t:1"], {FIRST: 40, SECOND: 100}),
        (Target(to_offset=7), ["t"], {FIRST: 7, SECOND: 7}),
        (Target(to_offset=700), ["t:0"], {FIRST: 100}),
        (Target(shift_by=-10), [], {FIRST: 30}),
        (Target(shift_by=-10), ["t"], {FIRST: 30}),
        (Target(shift_by=1000), [], {FIRST: 100}),
        (Target(to_current=True), [], {FIRST: 40}),
        (Target(to_datetime="-10m"), ["t"], {FIRST: 0, SECOND: 0}),
        (Target(by_duration="PT10M"), ["t:0,1"], {FIRST: 0, SECOND: 0}),
    ],
)
def test_offsets_are_reset_to_the_target(
    target: Target, topics: list[str], expected: dict[TopicPartition, int]
) -> None:
    world, coordinator = prepared()
    run(world, target, *topics)
    assert coordinator.offsets["g"] == expected


def test_without_execute_nothing_changes(capsys: pytest.CaptureFixture[str]) -> None:
    world, coordinator = prepared()
    run(world, Target(to_earliest=True), "t", is_executed=False)
    assert coordinator.offsets["g"] == {FIRST: 40}
    shown = capsys.readouterr()
    assert "Would be" in shown.out
    assert "Nothing was changed" in shown.err


def test_an_active_group_is_refused_but_its_dry_run_is_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    world, coordinator = prepared()
    coordinator.states["g"] = "Stable"
    with pytest.raises(ClientError, match="only while nobody reads"):
        run(world, Target(to_earliest=True), "t")
    world, coordinator = prepared()
    coordinator.states["g"] = "Stable"
    run(world, Target(to_earliest=True), "t", is_executed=False)
    assert "stop its consumers first" in capsys.readouterr().err


def test_exported_offsets_can_be_imported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    world, coordinator = prepared()
    run(world, Target(to_current=True), is_executed=False, export=True)
    saved = tmp_path / "offsets.csv"
    saved.write_text(capsys.readouterr().out)
    assert saved.read_text() == "t,0,40\n"
    world, coordinator = prepared()
    coordinator.offsets["g"] = {FIRST: 90}
    run(world, Target(from_file=str(saved)))
    assert coordinator.offsets["g"] == {FIRST: 40}


def test_json_has_old_and_new_offsets(capsys: pytest.CaptureFixture[str]) -> None:
    world, _ = prepared()
    run(world, Target(to_latest=True), "t", as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["executed"]
    assert told["offsets"][0] == {"topic": "t", "partition": 0, "before": 40, "offset": 100}
    assert told["offsets"][1]["before"] is None


def test_a_missing_partition_is_named() -> None:
    world, _ = prepared()
    with pytest.raises(UnknownPartition):
        run(world, Target(to_earliest=True), "t:7")


def test_a_group_without_offsets_needs_topics(capsys: pytest.CaptureFixture[str]) -> None:
    world, _ = prepared()
    with pytest.raises(ClientError, match="name topics with --topic"):
        run(world, Target(to_earliest=True), group="new")
    assert "there is no group 'new' yet" in capsys.readouterr().err


def test_kafkas_files_are_understood_with_and_without_groups() -> None:
    lines = ["t,0,5\n", "\n", "t, 1, 6\n"]
    assert parse_file(lines, "g", "f") == {FIRST: 5, SECOND: 6}
    assert parse_file(['"g","t",0,5\n', '"h","t",1,6\n'], "g", "f") == {FIRST: 5}


@pytest.mark.parametrize("lines", [["t,0"], ["t,x,5"], ["t,0,-5"], [], ["h,t,0,5"]])
def test_a_malformed_file_is_refused(lines: list[str]) -> None:
    with pytest.raises(Misuse, match="f"):
        parse_file(lines, "g", "f")


@pytest.mark.parametrize(
    ("text", "ms"),
    [("90m", 5_400_000), ("250ms", 250), ("PT1H30M", 5_400_000), ("P1DT0.5S", 86_400_500)],
)
def test_durations_are_understood_in_both_forms(text: str, ms: int) -> None:
    assert parse_duration(text) == ms


@pytest.mark.parametrize("text", ["", "P", "PT", "1 hour", "-5m"])
def test_an_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(Misuse):
        parse_duration(text)
