import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ottla.spark.delta import files as delta_files
from ottla.spark.delta.files import AddedFile, file_writer, write_file


def batch(start: int, end: int) -> pa.RecordBatch:
    numbers = list(range(start, end))
    return pa.record_batch([numbers, [str(n) for n in numbers]], names=["n", "text"])


def test_all_rows_are_in_one_file_whose_numbers_are_told(tmp_path: Path) -> None:
    added = write_file(str(tmp_path), [batch(5, 10), batch(0, 0), batch(-3, 2)])
    assert added is not None
    (path,) = tmp_path.iterdir()
    assert (added.path, added.size) == (path.name, path.stat().st_size)
    assert pq.read_table(path).column("n").to_pylist() == [5, 6, 7, 8, 9, -3, -2, -1, 0, 1]
    assert json.loads(added.stats) == {
        "numRecords": 10,
        "minValues": {"n": -3},
        "maxValues": {"n": 9},
    }


def test_no_rows_leave_no_file(tmp_path: Path) -> None:
    assert write_file(str(tmp_path), [batch(0, 0)]) is None
    assert list(tmp_path.iterdir()) == []


def test_rows_are_written_in_few_groups_as_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta_files, "ROW_GROUP_BYTES", 5000)
    write_file(str(tmp_path), [batch(n * 100, n * 100 + 100) for n in range(20)])
    (path,) = tmp_path.iterdir()
    assert 2 < pq.ParquetFile(path).num_row_groups < 15
    assert pq.read_table(path).column("n").to_pylist() == list(range(2000))


def test_an_address_is_a_place_too(tmp_path: Path) -> None:
    assert write_file(f"file://{tmp_path}", [batch(0, 1)]) is not None
    assert len(list(tmp_path.iterdir())) == 1


def test_a_column_with_a_row_group_of_nulls_has_no_range(tmp_path: Path) -> None:
    nothing = pa.record_batch([pa.array([None], pa.int64())], names=["n"])
    added = write_file(str(tmp_path), [nothing])
    assert added is not None
    assert json.loads(added.stats) == {"numRecords": 1, "minValues": {}, "maxValues": {}}


def test_a_task_describes_its_file_in_a_row(tmp_path: Path) -> None:
    (row,) = file_writer(str(tmp_path))([batch(0, 3)])
    (described,) = row.to_pylist()
    assert AddedFile(**described).path == next(tmp_path.iterdir()).name
    assert list(file_writer(str(tmp_path))([])) == []
