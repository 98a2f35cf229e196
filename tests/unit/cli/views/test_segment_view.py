"""Batches and records of a segment, shown."""

import json
from pathlib import Path

import pytest

from ottla.cli.views.segment_view import Wanted, show_segment
from ottla.protocol.control_records import ControlType, EndTxnMarker, encode_control
from ottla.records.record import Record, build_batch


def batch(start: int, *values: bytes, **options: int) -> bytes:
    records = [Record(start + i, 1000, b"k", value) for i, value in enumerate(values)]
    return bytes(build_batch(records, **options))


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(
        batch(0, b"a", b"b", codec=4)
        + batch(2, b"c", producer_id=7, producer_epoch=1, base_sequence=5)
    )
    return path


def test_batches_and_records_are_printed(segment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert show_segment(str(segment), Wanted(), as_json=False) == 0
    title, first, a, b, second, c = capsys.readouterr().out.splitlines()
    assert title.endswith("bytes")
    assert first.startswith("offsets 0 to 1, 2 records, at byte 0, ")
    assert "zstd" in first
    assert "producer 7 epoch 1, sequence 5 to 5" in second
    assert [line.split()[-1] for line in (a, b, c)] == ["a", "b", "c"]


def test_json_has_a_line_for_each_batch(segment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show_segment(str(segment), Wanted(), as_json=True)
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert [record["value"] for record in first["records"]] == ["a", "b"]
    assert (second["base_offset"], second["producer_id"], second["valid"]) == (2, 7, True)


def test_a_segment_is_shown_from_an_offset_up_to_a_limit(
    segment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show_segment(str(segment), Wanted(offset=2, has_records=False), as_json=True)
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["base_offset"] == 2
    assert "records" not in json.loads(line)
    show_segment(str(segment), Wanted(batches_max=1), as_json=True)
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["base_offset"] == 0


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: data[:-3], "is torn"),
        (lambda data: data + b"\0" * 5, "are no whole batch"),
        (lambda data: data + b"\0" * 100, "no batch begins at byte"),
        (lambda data: data + data[:16] + b"\1" + data[17:], "format 1"),
    ],
)
def test_a_malformed_batch_is_reported_after_the_valid_ones(
    damage: object, words: str, segment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(damage)
    segment.write_bytes(damage(segment.read_bytes()))
    assert show_segment(str(segment), Wanted(has_records=False), as_json=False) == 1
    shown = capsys.readouterr()
    assert words in shown.err
    assert "offsets 0 to 1" in shown.out


def test_a_wrong_checksum_is_reported_and_its_records_are_not_shown(
    segment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = bytearray(segment.read_bytes())
    data[-2] ^= 1
    segment.write_bytes(data)
    assert show_segment(str(segment), Wanted(), as_json=False) == 1
    shown = capsys.readouterr().out
    assert "CHECKSUM WRONG" in shown
    assert "value c" not in shown


def test_markers_of_transactions_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key, value = encode_control(ControlType.ABORT, EndTxnMarker(3))
    path = tmp_path / "x.log"
    path.write_bytes(
        build_batch(
            [Record(0, 0, key, value)], is_control=True, is_transactional=True, producer_id=1
        )
    )
    show_segment(str(path), Wanted(), as_json=False)
    assert "ABORT  coordinator_epoch=3" in capsys.readouterr().out
