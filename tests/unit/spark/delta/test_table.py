from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from ottla.spark.delta.files import AddedFile, write_file
from ottla.spark.delta.table import IS_DELETED, LakeTable, StaleDriver
from ottla.spark.errors import SparkError

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string()), ("seq", pa.int64())])


def open_table(path: Path) -> LakeTable:
    return LakeTable(str(path), SCHEMA, {})


def written(path: Path, *rows: tuple[int, str, int]) -> list[AddedFile]:
    columns = list(zip(*rows, strict=True))
    added = write_file(str(path), [pa.record_batch(columns, schema=SCHEMA)])
    assert added is not None
    return [added]


def changes(*rows: tuple[int, str | None, int, bool]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    kinds = [pa.int64(), pa.string(), pa.int64(), pa.bool_()]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.table(arrays, names=[*SCHEMA.names, IS_DELETED])


def contents(path: Path) -> list[tuple[Any, ...]]:
    rows = DeltaTable(str(path)).to_pyarrow_table().to_pylist()
    return sorted(tuple(row[name] for name in SCHEMA.names) for row in rows)


def test_files_and_the_mark_of_the_batch_come_in_one_commit(tmp_path: Path) -> None:
    table = open_table(tmp_path)
    assert not table.has("q", 0)
    table.append("q", 0, written(tmp_path, (1, "a", 0), (2, "b", 1)))
    assert table.has("q", 0)
    assert not table.has("q", 1)
    assert not table.has("other", 0)
    assert contents(tmp_path) == [(1, "a", 0), (2, "b", 1)]
    assert open_table(tmp_path).has("q", 0), "the table itself knows"


def test_of_two_drivers_of_one_query_the_second_is_refused(tmp_path: Path) -> None:
    first, zombie = open_table(tmp_path), open_table(tmp_path)
    assert not zombie.has("q", 0)
    first.append("q", 0, written(tmp_path, (1, "a", 0)))
    with pytest.raises(StaleDriver, match="another driver runs this query"):
        zombie.append("q", 0, written(tmp_path, (1, "a", 0)))
    assert contents(tmp_path) == [(1, "a", 0)]


def test_of_two_mergers_of_one_query_the_second_is_refused(tmp_path: Path) -> None:
    first, zombie = open_table(tmp_path), open_table(tmp_path)
    first.merge("q", 0, changes((1, "a", 0, False)), ["id"], None)
    with pytest.raises(StaleDriver):
        zombie.merge("q", 0, changes((2, "b", 0, False)), ["id"], None)
    assert contents(tmp_path) == [(1, "a", 0)]


def test_two_queries_may_append_at_once(tmp_path: Path) -> None:
    first, second = open_table(tmp_path), open_table(tmp_path)
    first.append("q", 0, written(tmp_path, (1, "a", 0)))
    second.append("r", 0, written(tmp_path, (2, "b", 0)))
    assert len(contents(tmp_path)) == 2


def test_changes_replace_insert_and_delete(tmp_path: Path) -> None:
    table = open_table(tmp_path)
    rows = ((1, "a", 5, False), (2, "b", 5, False), (3, "c", 5, False))
    table.merge("q", 0, changes(*rows), ["id"], "seq")
    later = ((1, "A", 6, False), (2, None, 6, True), (4, None, 6, True), (5, "e", 6, False))
    table.merge("q", 1, changes(*later), ["id"], "seq")
    assert contents(tmp_path) == [(1, "A", 6), (3, "c", 5), (5, "e", 6)]
    assert table.has("q", 1)


def test_an_older_change_changes_nothing(tmp_path: Path) -> None:
    table = open_table(tmp_path)
    table.merge("q", 0, changes((1, "a", 5, False), (2, "b", 5, False)), ["id"], "seq")
    table.merge("q", 1, changes((1, "old", 4, False), (2, None, 4, True)), ["id"], "seq")
    assert contents(tmp_path) == [(1, "a", 5), (2, "b", 5)]


def test_a_table_with_another_schema_is_refused(tmp_path: Path) -> None:
    open_table(tmp_path)
    with pytest.raises(SparkError, match=r"column 'id' of the table .* is long, .* string"):
        LakeTable(str(tmp_path), pa.schema([("id", pa.string())]), {})
    with pytest.raises(SparkError, match="has no column 'more'"):
        LakeTable(str(tmp_path), pa.schema([("more", pa.list_(pa.int32()))]), {})
