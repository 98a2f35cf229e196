"""Output of `ottla dlq peek`."""

import json

import pytest

from ottla.cli.views.dead_letter_view import peek, replay_group, unplayed
from ottla.client.message import Message
from ottla.consumer.dead_letters import headers_for
from ottla.model.types import TopicPartition
from ottla.records.record import Record, build_batch
from tests.unit.client.fake_broker import World
from tests.unit.client.fake_coordinator import world_with_groups

FIRST = TopicPartition("t", 0)


def write_letters(world: World, *values: bytes) -> None:
    """Dead letters of `orders`, whose dead letter topic is `t`."""
    records = []
    for offset, value in enumerate(values):
        origin = Message("orders", 2, 70 + offset, 1000, False, b"k", value, (("own", b"1"),))
        headers = headers_for(origin, ValueError("bad\x1b"), group="billing", handler="h")
        records.append(Record(offset, 1000, b"k", value, tuple(headers)))
    world.broker.log[FIRST] += build_batch(records)
    world.broker.end[FIRST] += len(values)


def show(
    world: World, *, messages_max: int = 10, is_all: bool = False, shows_json: bool = False
) -> None:
    async def work() -> None:
        await peek(
            world.cluster(),
            "t",
            group=None,
            messages_max=messages_max,
            is_all=is_all,
            has_stacktraces=True,
            shows_json=shows_json,
        )

    world.run(work)


def test_a_dead_letter_shows_origin_and_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    world, _ = world_with_groups()
    write_letters(world, b"a")
    show(world)
    shown = capsys.readouterr()
    assert "orders-2 at offset 70, by billing" in shown.out
    assert "builtins.ValueError: bad\\x1b" in shown.out
    assert "own=1" in shown.out
    assert "| ValueError" in shown.out
    assert "1 dead letter shown of about 1 not replayed" in shown.err


def test_replayed_letters_are_shown_only_with_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for is_all, expected in ((False, ["b", "c"]), (True, ["a", "b", "c"])):
        world, coordinator = world_with_groups()
        write_letters(world, b"a", b"b", b"c")
        coordinator.offsets[replay_group("t")] = {FIRST: 1}
        show(world, is_all=is_all, shows_json=True)
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [line["value"] for line in lines] == expected
        assert lines[-1]["original_offset"] == 72
        assert lines[-1]["error_message"] == "bad\x1b"


def test_peek_stops_after_max_messages(capsys: pytest.CaptureFixture[str]) -> None:
    world, _ = world_with_groups()
    write_letters(world, b"a", b"b", b"c")
    show(world, messages_max=1)
    assert "1 dead letter shown of about 3" in capsys.readouterr().err


def test_a_large_value_is_truncated(capsys: pytest.CaptureFixture[str]) -> None:
    world, _ = world_with_groups()
    write_letters(world, b"x" * 5000)
    show(world)
    assert "(5,000 bytes)" in capsys.readouterr().out


def test_unplayed_letters_start_at_the_committed_offset() -> None:
    world, coordinator = world_with_groups()
    write_letters(world, b"a", b"b")
    coordinator.offsets["other"] = {FIRST: 2}

    async def work() -> None:
        assert await unplayed(world.cluster(), "t", "g") == ({FIRST: 0}, {FIRST: 2})
        assert await unplayed(world.cluster(), "t", "other") == ({FIRST: 2}, {FIRST: 2})

    world.run(work)
