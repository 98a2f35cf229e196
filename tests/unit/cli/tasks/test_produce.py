"""Lines to records."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from ottla.cli.tasks.client_options import Misuse
from ottla.cli.tasks.produce import Line, Source, read_chunks, write_all
from ottla.client.delivery import ProducerSettings
from ottla.client.unpacking import unpack
from ottla.model.types import TopicPartition
from tests.unit.client.fake_broker import World

PLAIN = Source([], [], None, None, [], False, False, False)


def lines_of(**options: object) -> list[Line]:
    source = Source(**{**{name: getattr(PLAIN, name) for name in Source.__slots__}, **options})

    async def read() -> list[Line]:
        return [line async for line in source.lines()]

    return asyncio.run(read())


def file_with(tmp_path: Path, content: bytes) -> list[str]:
    path = tmp_path / "input"
    path.write_bytes(content)
    return [str(path)]


def test_each_value_is_a_record_with_the_same_key_and_headers() -> None:
    assert lines_of(values=["a", "b"], key="k", headers=["h=1"]) == [
        Line(b"a", b"k", (("h", b"1"),)),
        Line(b"b", b"k", (("h", b"1"),)),
    ]


def test_arguments_that_are_not_utf_8_keep_their_bytes() -> None:
    assert lines_of(values=[os.fsdecode(b"\xff\xfe")]) == [Line(b"\xff\xfe")]


def test_lines_end_with_either_kind_of_end_or_with_none(tmp_path: Path) -> None:
    files = file_with(tmp_path, b"a\r\n\nb\n\xff")
    assert [line.value for line in lines_of(files=files)] == [b"a", b"", b"b", b"\xff"]


def test_lines_longer_than_a_chunk_are_whole(tmp_path: Path) -> None:
    long = b"x" * 700_000
    files = file_with(tmp_path, long + b"\ny\n" + long)
    assert [line.value for line in lines_of(files=files)] == [long, b"y", long]


def test_a_file_can_be_one_record(tmp_path: Path) -> None:
    files = file_with(tmp_path, b"a\nb\n")
    assert lines_of(files=files, is_whole=True) == [Line(b"a\nb\n")]


def test_a_separator_is_taken_as_typed_and_cuts_once(tmp_path: Path) -> None:
    files = file_with(tmp_path, b"k\tv\tw\n\tno key\n")
    assert lines_of(files=files, key_separator="\\t") == [
        Line(b"v\tw", b"k"),
        Line(b"no key", b""),
    ]


def test_a_line_without_the_separator_is_named(tmp_path: Path) -> None:
    files = file_with(tmp_path, b"k:v\nv\n")
    with pytest.raises(Misuse, match="line 2 has no key: ':' does not occur"):
        lines_of(files=files, key_separator=":")


def test_json_lines_are_what_consume_writes(tmp_path: Path) -> None:
    rows = [
        {"value": "v", "key": "k", "timestamp": 5, "headers": [{"name": "h", "value": "1"}]},
        {"value_base64": "/w==", "key": None, "offset": 9},
        {"key": "gone", "value": None},
    ]
    files = file_with(tmp_path, b"\n".join(json.dumps(row).encode() for row in rows))
    assert lines_of(files=files, is_json=True) == [
        Line(b"v", b"k", (("h", b"1"),), 5),
        Line(b"\xff"),
        Line(None, b"gone"),
    ]


@pytest.mark.parametrize(
    "line", [b"text", b"[1]", b"3", b'{"value": 5}', b'{"value_base64": "!"}', b'{"headers": [1]}']
)
def test_a_line_that_is_no_record_is_named(line: bytes, tmp_path: Path) -> None:
    files = file_with(tmp_path, line)
    with pytest.raises(Misuse, match="line 1 is not a record"):
        lines_of(files=files, is_json=True)


def test_a_tombstone_has_a_key_and_no_value() -> None:
    assert lines_of(key="k", is_tombstone=True) == [Line(None, b"k")]


def test_piped_lines_are_sent_at_once() -> None:
    async def read() -> list[bytes]:
        reading, writing = os.pipe()
        found = []
        os.write(writing, b"first")
        async for chunk in read_chunks(reading):
            found.append(chunk)
            if len(found) == 1:
                os.write(writing, b"second")
                os.close(writing)
        os.close(reading)
        return found

    assert asyncio.run(read()) == [b"first", b"second"]


def test_the_summary_counts_written_records(capsys: pytest.CaptureFixture[str]) -> None:
    world = World()
    source = Source(["a", "b"], [], None, None, [], False, False, False)

    async def work() -> None:
        await write_all(world.cluster(), "t", source, None, ProducerSettings(), as_json=False)
        await write_all(world.cluster(), "t", source, 0, ProducerSettings(), as_json=True)

    world.run(work)
    told, as_json = capsys.readouterr().out.splitlines()
    assert told == "2 records written to t, partition 0, offsets 0 to 1."
    assert json.loads(as_json) == {
        "topic": "t",
        "records": 2,
        "bytes": 2,
        "partitions": [{"partition": 0, "first_offset": 2, "last_offset": 3}],
    }


def test_lines_before_a_bad_one_are_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    world = World()
    files = file_with(tmp_path, b"k:v\nv\n")
    source = Source([], files, None, ":", [], False, False, False)

    async def work() -> None:
        with pytest.raises(Misuse):
            await write_all(world.cluster(), "t", source, None, ProducerSettings(), as_json=False)

    world.run(work)
    assert capsys.readouterr().out.startswith("1 record written")
    messages, _ = unpack(TopicPartition("t", 0), bytes(world.broker.log["t", 0]), offset=0)
    assert [(message.key, message.value) for message in messages] == [(b"k", b"v")]
