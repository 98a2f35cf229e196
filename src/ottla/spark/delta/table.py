"""A Delta table and the progress of a query in it: both change in one commit, or neither.

Each commit carries (query, micro-batch). A micro-batch that is in the table is not written again;
the table refuses a late one, from a driver that was replaced without knowing.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from deltalake import DeltaTable, Schema
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, CommitProperties, RemoveAction, Transaction

from ottla.spark.delta.files import AddedFile
from ottla.spark.errors import SparkError

IS_DELETED: Final = "__ottla_is_deleted"


class StaleDriver(SparkError):
    """Another driver runs the same query, and has written this micro-batch or a later one."""


def check_table(path: str, schema: Any, storage_options: Mapping[str, str]) -> None:  # noqa: ANN401
    """SparkError if there is a table with another schema; `schema` is a pyarrow.Schema."""
    options = dict(storage_options) or None
    if DeltaTable.is_deltatable(path, storage_options=options):
        there = DeltaTable(path, storage_options=options)
        _check_schema(path, Schema.from_arrow(schema), there.schema())


class LakeTable:
    def __init__(self, path: str, schema: Any, storage_options: Mapping[str, str]) -> None:  # noqa: ANN401
        """Open the table, or create it; `schema` is a pyarrow.Schema."""
        self._wanted = Schema.from_arrow(schema)
        options = dict(storage_options)
        self._table = DeltaTable.create(
            path, self._wanted, mode="ignore", storage_options=options or None
        )
        _check_schema(path, self._wanted, self._table.schema())

    def has(self, query: str, batch: int) -> bool:
        """Whether a micro-batch is in the table."""
        self._table.update_incremental()
        last = self._table.transaction_version(query)
        return last is not None and last >= batch

    def append(self, query: str, batch: int, files: Iterable[AddedFile]) -> None:
        actions: list[AddAction | RemoveAction] = [
            AddAction(added.path, added.size, {}, added.modified_ms, True, added.stats)
            for added in files
        ]
        try:
            self._table.create_write_transaction(
                actions,
                mode="append",
                schema=self._wanted,
                commit_properties=_marked(query, batch),
            )
        except CommitFailedError as failure:
            raise self._told(query, batch, failure) from failure

    def merge(
        self,
        query: str,
        batch: int,
        changes: Any,  # noqa: ANN401  A pyarrow.Table.
        keys: Sequence[str],
        sequence: str | None,
    ) -> None:
        """Upsert by key; rows with a true column `IS_DELETED` delete their matches."""
        columns = [name for name in changes.column_names if name != IS_DELETED]
        is_newer = f"s.{_quoted(sequence)} >= t.{_quoted(sequence)}" if sequence else "true"
        merger = self._table.merge(
            changes,
            predicate=" and ".join(f"t.{_quoted(key)} = s.{_quoted(key)}" for key in keys),
            source_alias="s",
            target_alias="t",
            commit_properties=_marked(query, batch),
        )
        values = {_quoted(name): f"s.{_quoted(name)}" for name in columns}
        deleted = f"s.{IS_DELETED}"
        try:
            (
                merger.when_matched_delete(f"{deleted} and {is_newer}")
                .when_matched_update(values, f"not {deleted} and {is_newer}")
                .when_not_matched_insert(values, f"not {deleted}")
                .execute()
            )
        except CommitFailedError as failure:
            raise self._told(query, batch, failure) from failure

    def _told(self, query: str, batch: int, failure: CommitFailedError) -> SparkError:
        if self.has(query, batch):
            return StaleDriver(
                f"micro-batch {batch} is already in the table: another driver runs this query"
            )
        return SparkError(f"micro-batch {batch} could not be committed: {failure}")


def _marked(query: str, batch: int) -> CommitProperties:
    # No retry: a commit that conflicts with one of the same query must fail.
    return CommitProperties(
        app_transactions=[Transaction(query, batch)],
        custom_metadata={"ottla.query": query, "ottla.batch": str(batch)},
    )


def _check_schema(path: str, wanted: Schema, found: Schema) -> None:
    ours, theirs = _types(wanted), _types(found)
    for name, kind in ours.items():
        if name not in theirs:
            raise SparkError(f"the table {path} has no column {name!r}")
        if kind != theirs[name]:
            raise SparkError(
                f"column {name!r} of the table {path} is {theirs[name]}, that of the frame {kind}"
            )


def _types(schema: Schema) -> dict[str, str]:
    fields = json.loads(schema.to_json())["fields"]
    return {field["name"]: _named(field["type"]) for field in fields}


def _named(kind: Any) -> str:  # noqa: ANN401
    if isinstance(kind, str):
        return kind
    if kind["type"] == "array":
        return f"array<{_named(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{_named(kind['keyType'])},{_named(kind['valueType'])}>"
    inside = ",".join(f"{item['name']}:{_named(item['type'])}" for item in kind["fields"])
    return f"struct<{inside}>"


def _quoted(name: str | None) -> str:
    return f"`{name}`"
