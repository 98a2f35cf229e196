"""`ottla dlq replay`: back to the original topics, once."""

import json

import pytest

from ottla.cli.tasks.replay import replay, replay_settings
from ottla.cli.tasks.replay_notes import Begun, read_note
from ottla.cli.views.dead_letter_view import replay_group
from ottla.client.errors import ClientError
from ottla.client.idempotence import Identity
from ottla.client.metadata import UnknownTopic
from ottla.model.types import TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages import offset_commit
from ottla.records.batch import Batch
from ottla.records.record import Record, build_batch, read_records
from tests.unit.cli.views.test_dead_letter_view import write_letters
from tests.unit.client.fake_broker import World
from tests.unit.client.fake_coordinator import FakeCoordinator, world_with_groups

FIRST = TopicPartition("t", 0)
GROUP = replay_group("t")


def prepared() -> tuple[World, FakeCoordinator]:
    world, coordinator = world_with_groups()
    world.broker.topics.update(orders=3, u=1)
    world.broker.topic_ids["orders"] = b"o" * 16
    write_letters(world, b"a", b"b", b"c")
    return world, coordinator


async def run(
    world: World,
    *,
    target: str | None = None,
    messages_max: int | None = None,
    is_executed: bool = True,
    shows_json: bool = False,
) -> None:
    wanted = replay_settings(
        "t",
        group=None,
        target=target,
        messages_max=messages_max,
        is_executed=is_executed,
        shows_json=shows_json,
    )
    await replay(world.cluster(), wanted)


def records_of(world: World, topic: str, partition: int) -> list[Record]:
    data = bytes(world.broker.log[topic, partition])
    found: list[Record] = []
    position = 0
    while position < len(data):
        batch = Batch.parse(data, position)
        found += read_records(batch, 1 << 20)
        position += batch.size
    return found


def test_letters_are_replayed_unchanged_and_once(capsys: pytest.CaptureFixture[str]) -> None:
    world, coordinator = prepared()

    async def work() -> None:
        await run(world, messages_max=1)
        assert coordinator.offsets[GROUP] == {FIRST: 1}
        await run(world)
        assert coordinator.offsets[GROUP] == {FIRST: 3}
        await run(world)

    world.run(work)
    back = records_of(world, "orders", 2)
    assert [record.value for record in back] == [b"a", b"b", b"c"]
    assert {record.headers for record in back} == {(("own", b"1"),)}
    assert {(record.key, record.timestamp) for record in back} == {(b"k", 1000)}
    assert "holds no dead letters" in capsys.readouterr().out


def test_without_execute_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    world, coordinator = prepared()

    async def work() -> None:
        await run(world, is_executed=False, shows_json=True)

    world.run(work)
    told = json.loads(capsys.readouterr().out)
    assert (told["executed"], told["replayed"]) == (False, {"orders": 3})
    assert coordinator.offsets == {}
    assert not world.broker.log["orders", 2]


def test_letters_may_go_to_a_named_topic() -> None:
    world, _ = prepared()

    async def work() -> None:
        await run(world, target="u")

    world.run(work)
    assert len(records_of(world, "u", 0)) == 3


def test_a_missing_target_is_named_and_nothing_is_committed() -> None:
    world, coordinator = prepared()

    async def work() -> None:
        with pytest.raises(UnknownTopic):
            await run(world, target="nowhere")

    world.run(work)
    assert coordinator.offsets == {}


def test_a_letter_without_origin_needs_a_target() -> None:
    world, _ = prepared()
    world.broker.log[FIRST] = build_batch([Record(0, 0, None, b"stray")])

    async def work() -> None:
        with pytest.raises(ClientError, match="name a topic with --to"):
            await run(world, is_executed=False)

    world.run(work)


def test_an_active_replay_group_is_refused() -> None:
    world, coordinator = prepared()
    coordinator.states[GROUP] = "Stable"

    async def work() -> None:
        with pytest.raises(ClientError, match="name another with --group"):
            await run(world)

    world.run(work)


def test_an_interrupted_chunk_is_repeated_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    world, coordinator = prepared()
    coordinator.offsets[GROUP] = {FIRST: 0}
    coordinator.notes[GROUP, FIRST] = Begun(2, Identity(77, 3), "u").encode()

    async def work() -> None:
        await run(world, shows_json=True)

    world.run(work)
    again = Batch.parse(world.broker.log["u", 0])
    assert (again.producer_id, again.producer_epoch, again.base_sequence) == (77, 3, 0)
    assert [record.value for record in records_of(world, "u", 0)] == [b"a", b"b"]
    assert [record.value for record in records_of(world, "orders", 2)] == [b"c"]
    assert coordinator.offsets[GROUP] == {FIRST: 3}
    assert coordinator.notes[GROUP, FIRST] == ""
    assert json.loads(capsys.readouterr().out)["replayed"] == {"u": 2, "orders": 1}


def test_an_interrupted_chunk_of_a_deleted_topic_is_restarted() -> None:
    world, coordinator = prepared()
    coordinator.offsets[GROUP] = {FIRST: 0}
    coordinator.notes[GROUP, FIRST] = Begun(2, Identity(77, 3), "nowhere").encode()

    async def work() -> None:
        await run(world)

    world.run(work)
    assert len(records_of(world, "orders", 2)) == 3


def test_the_producer_id_is_noted_before_sending() -> None:
    world, coordinator = prepared()
    noted: list[tuple[int, Begun | None]] = []
    commit = coordinator.serve_offset_commit

    def watch(request: offset_commit.Request, version: int) -> offset_commit.Response:
        (item,) = request.topics[0].partitions
        note = read_note(item.committed_metadata or "", item.committed_offset)
        noted.append((item.committed_offset, note))
        return commit(request, version)

    world.broker.always[ApiKey.OFFSET_COMMIT] = watch

    async def work() -> None:
        await run(world)

    world.run(work)
    (_, begun), end = noted
    assert begun is not None
    assert end == (3, None)
    written = Batch.parse(world.broker.log["orders", 2])
    assert (written.producer_id, written.producer_epoch) == begun.identity
    assert (begun.until, begun.target) == (3, None)
