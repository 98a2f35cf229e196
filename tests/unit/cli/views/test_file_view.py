"""Files are recognised by their names."""

import json
from pathlib import Path

import pytest

from ottla.cli.tasks.client_options import Misuse
from ottla.cli.views.file_view import show_file
from ottla.cli.views.segment_view import Wanted
from ottla.model.types import TopicPartition
from ottla.protocol.metadata_records import TopicRecord, encode_record
from ottla.records.record import Record, build_batch
from ottla.storage.checkpoint import encode_epochs, encode_offsets
from ottla.storage.index import OffsetIndex, TimeIndex
from ottla.storage.producer_snapshot import encode_snapshot
from ottla.storage.producer_state import Appended, Producer
from ottla.storage.transaction_index import AbortedTransaction, TransactionIndex


def told(path: Path, content: bytes, capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    assert show_file(str(path), Wanted(), as_json=True) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_preallocated_offset_index_is_shown_without_zeros(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index = OffsetIndex(100)
    index.add(105, 4096)
    index.add(110, 8192)
    path = tmp_path / "00000000000000000100.index"
    assert told(path, index.encode() + bytes(80), capsys) == [
        {"offset": 105, "position": 4096},
        {"offset": 110, "position": 8192},
    ]
    assert told(path, bytes(800), capsys) == []


def test_a_time_index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = TimeIndex(100)
    index.add_if_later(1_700_000_000_000, 105)
    path = tmp_path / "00000000000000000100.timeindex"
    assert told(path, index.encode(), capsys) == [{"timestamp": 1_700_000_000_000, "offset": 105}]
    show_file(str(path), Wanted(), as_json=False)
    assert "2023-11-1" in capsys.readouterr().out


def test_aborted_transactions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = TransactionIndex([AbortedTransaction(7, 1, 5, 6)])
    (row,) = told(tmp_path / "00000000000000000000.txnindex", index.encode(), capsys)
    assert row["producer_id"] == 7
    assert row["last_stable_offset"] == 6


def test_a_producer_snapshot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    producers = {7: Producer(1, 2, 1000, -1, (Appended(9, 50, 3, 1000),))}
    (row,) = told(tmp_path / "00000000000000000051.snapshot", encode_snapshot(producers), capsys)
    assert (row["producer_id"], row["last_sequence"], row["last_offset"]) == (7, 9, 50)


def test_checkpoints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    epochs = encode_epochs([(0, 0), (3, 20)])
    assert told(tmp_path / "leader-epoch-checkpoint", epochs, capsys)[1] == {
        "epoch": 3,
        "start_offset": 20,
    }
    offsets = encode_offsets({TopicPartition("t", 1): 5})
    assert told(tmp_path / "recovery-point-offset-checkpoint", offsets, capsys) == [
        {"topic": "t", "partition": 1, "offset": 5}
    ]


def test_small_texts_are_shown_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = told(tmp_path / "partition.metadata", b"version: 0\ntopic_id: x\n", capsys)
    assert rows == [{"text": "version: 0"}, {"text": "topic_id: x"}]


def test_metadata_is_recognised_by_directory_or_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = encode_record(TopicRecord("t", b"\x01" * 16), 0)
    content = bytes(build_batch([Record(0, 0, None, value)]))
    for path in (
        tmp_path / "__cluster_metadata-0" / "00000000000000000000.log",
        tmp_path / "00000000000000000009-0000000001.checkpoint",
        tmp_path / "bootstrap.checkpoint",
    ):
        (batch,) = told(path, content, capsys)
        assert batch["records"][0]["type"] == "Topic"  # type: ignore[index]


def test_a_torn_index_is_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "00000000000000000100.timeindex"
    path.write_bytes(b"\1" * 13)
    assert show_file(str(path), Wanted(), as_json=False) == 1
    assert "is damaged" in capsys.readouterr().err


def test_other_files_are_refused_with_those_that_can_be_shown(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("x")
    with pytest.raises(Misuse, match=r"\.timeindex"):
        show_file(str(path), Wanted(), as_json=False)
