"""Which records go before an offset, a time, or the end."""

import pytest

from ottla.cli.tasks.client_options import Misuse
from ottla.cli.tasks.delete_records import Cut, delete_before, plan_cuts
from ottla.model.types import TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages import list_offsets
from tests.unit.client.fake_broker import World

START, END = 10, 50
PLACE = TopicPartition("t", 0)


def world_with_records() -> World:
    """One partition with offsets 10 to 49; timestamps are found at offset 30, or not at all."""
    world = World()

    def found(request: list_offsets.Request, version: int) -> list_offsets.Response:
        (topic,) = request.topics
        (wanted,) = topic.partitions
        is_young = wanted.timestamp > world.clock.wall() - 5_000
        offset = {-2: START, -1: END}.get(wanted.timestamp, -1 if is_young else 30)
        result = list_offsets.ListOffsetsPartitionResponse(0, offset=offset, timestamp=1)
        return list_offsets.Response(topics=[list_offsets.ListOffsetsTopicResponse("t", [result])])

    world.broker.always[ApiKey.LIST_OFFSETS] = found
    return world


@pytest.mark.parametrize(
    ("before", "new_start"),
    [("end", END), ("20", 20), ("3", START), ("900", END), ("-10s", 30), ("-1s", END)],
)
def test_the_new_start_is_within_the_partition(before: str, new_start: int) -> None:
    world = world_with_records()

    async def work() -> None:
        cuts = await plan_cuts(world.cluster(), ["t"], before)
        assert cuts == {PLACE: Cut(START, new_start, END)}
        assert cuts[PLACE].records == new_start - START

    world.run(work)


def test_a_word_that_is_no_place_is_refused() -> None:
    world = world_with_records()

    async def work() -> None:
        with pytest.raises(Misuse, match="--before 'soon': expected an offset"):
            await plan_cuts(world.cluster(), ["t"], "soon")

    world.run(work)


@pytest.mark.parametrize(("before", "is_dry"), [("20", True), ("10", False)])
def test_nothing_is_sent_by_a_dry_run_or_where_nothing_goes(
    before: str, is_dry: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    world = world_with_records()
    world.run(
        lambda: delete_before(
            world.cluster(), ["t"], before, is_dry=is_dry, may_ask=False, as_json=False
        )
    )
    assert "Nothing was deleted" in capsys.readouterr().err
    assert not world.broker.count(ApiKey.DELETE_RECORDS)
