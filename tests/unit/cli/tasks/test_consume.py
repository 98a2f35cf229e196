"""Where `ottla consume` begins and ends."""

import pytest

from ottla.cli.tasks.client_options import Misuse
from ottla.cli.tasks.consume import Start, read_all
from ottla.cli.views.record_output import RecordOutput
from ottla.client.errors import ClientError
from ottla.client.metadata import UnknownPartition, UnknownTopic
from ottla.client.offsets import EARLIEST, LATEST
from ottla.model.types import TopicPartition
from ottla.records.record import Record, build_batch
from tests.unit.client.fake_broker import World

PRINTING = RecordOutput("text", False, False, False, False, b"\t", b" ", False)


Capture = pytest.CaptureFixture[bytes]


def write(world: World, *values: bytes, partition: int = 0) -> None:
    place = TopicPartition("t", partition)
    start = world.broker.end[place]
    records = [Record(start + index, 0, None, value) for index, value in enumerate(values)]
    world.broker.log[place] += build_batch(records)
    world.broker.end[place] += len(values)


def consume(
    world: World, start: Start, *, to_end: bool = True, messages_max: int | None = None,
    partitions: list[int] | None = None, topic: str = "t",
) -> None:  # fmt: skip
    async def work() -> None:
        await read_all(
            world.cluster(),
            topic,
            partitions or [],
            start,
            PRINTING,
            to_end=to_end,
            messages_max=messages_max,
            is_committed_only=False,
        )

    world.run(work)


def test_it_reads_to_the_end_and_tells_the_count(capsysbinary: Capture) -> None:
    world = World()
    world.broker.topics["t"] = 2
    write(world, b"a", b"b")
    write(world, b"c", partition=1)
    consume(world, Start(special=EARLIEST))
    shown = capsysbinary.readouterr()
    assert sorted(shown.out.split()) == [b"a", b"b", b"c"]
    assert shown.err == b"3 records read.\n"


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (Start(offset=2), b"c d "),
        (Start(offset=4), b""),
        (Start(back=3), b"b c d "),
        (Start(back=99), b"a b c d "),
        (Start(special=LATEST), b""),
        (Start(time="-10m"), b"a b c d "),
    ],
)
def test_it_begins_where_it_is_told_to(
    start: Start, expected: bytes, capsysbinary: Capture
) -> None:
    world = World()
    write(world, b"a", b"b", b"c", b"d")
    consume(world, start)
    assert capsysbinary.readouterr().out == expected


def test_peek_stops_after_max_messages(capsysbinary: Capture) -> None:
    world = World()
    write(world, b"a", b"b", b"c")
    consume(world, Start(special=EARLIEST), to_end=False, messages_max=2)
    assert capsysbinary.readouterr().out == b"a b "


def test_only_the_partitions_asked_for_are_read(capsysbinary: Capture) -> None:
    world = World()
    world.broker.topics["t"] = 3
    for partition in range(3):
        write(world, b"%d" % partition, partition=partition)
    consume(world, Start(special=EARLIEST), partitions=[2])
    assert capsysbinary.readouterr().out == b"2 "


def test_an_offset_that_no_partition_has_is_refused_with_those_there_are() -> None:
    world = World()
    write(world, b"a", b"b")
    with pytest.raises(ClientError, match="offset 9 is out of range: t-0 holds offsets 0 to 1"):
        consume(world, Start(offset=9))


def test_partitions_shorter_than_the_offset_give_what_they_have(capsysbinary: Capture) -> None:
    world = World()
    world.broker.topics["t"] = 2
    write(world, b"a", b"b", b"c")
    write(world, b"x", partition=1)
    consume(world, Start(offset=2))
    assert capsysbinary.readouterr().out == b"c "


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(UnknownPartition, match="no partition 4"):
        consume(World(), Start(special=EARLIEST), partitions=[4])
    with pytest.raises(UnknownTopic, match="'nope'"):
        consume(World(), Start(special=EARLIEST), topic="nope")


def test_the_options_choose_the_start() -> None:
    def choose(**options: object) -> Start:
        given = {"from_beginning": False, "offset": None, "from_time": None, "to_end": False}
        return Start.choose(**{**given, **options})  # type: ignore[arg-type]

    assert choose() == Start(special=LATEST)
    assert choose(to_end=True) == choose(from_beginning=True) == Start(special=EARLIEST)
    assert choose(offset="latest", to_end=True) == Start(special=LATEST)
    assert choose(offset="12") == Start(offset=12)
    assert choose(offset="-12") == Start(back=12)
    assert choose(from_time="-1h") == Start(time="-1h")
    with pytest.raises(Misuse):
        choose(from_beginning=True, offset="1")
