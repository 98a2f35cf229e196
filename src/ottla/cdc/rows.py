"""Converts each row change to records: a row, a tombstone, or tombstones of all keys (TRUNCATE).

A large value that an update did not change is not in the server's log. With replica identity FULL
the old row has it; else it is read from the current table. If it has changed since, that change
follows in the stream: the topic converges to the table in both cases.
"""

from dataclasses import dataclass

from ottla.cdc.catalogue import Catalogue
from ottla.cdc.changes import Change
from ottla.cdc.known_rows import KnownRows
from ottla.cdc.pgoutput import UNCHANGED, Relation, Row
from ottla.cdc.position import Position
from ottla.cdc.progress import Say
from ottla.cdc.settings import TailSettings
from ottla.cdc.setup import Plan
from ottla.cdc.table import Field, Table, TableName
from ottla.cdc.topics import ensure_topic, how_far, read_to_end
from ottla.cdc.writer import Writer
from ottla.client.cluster import Cluster
from ottla.model.types import TopicPartition

FULL = "f"
OWN_TYPES_SINCE = 16384  # Lower ids are PostgreSQL's own types, and never change.


@dataclass(slots=True)
class Tailed:
    table: Table
    is_full: bool


class Rows:
    def __init__(
        self, cluster: Cluster, settings: TailSettings, plan: Plan, writer: Writer, say: Say
    ) -> None:
        self.written = 0  # Changes, not records.
        self._cluster = cluster
        self._settings = settings
        self._plan = plan
        self._writer = writer
        self._say = say
        self._tailed: dict[int, Tailed] = {}
        self._filled: set[TableName] = set()
        self._known_types: set[int] = set()

    async def relation(self, relation: Relation) -> None:
        """Store the description of a table, new or changed."""
        name = TableName(relation.schema, relation.name)
        topic = self._plan.topic(name)
        self._tailed.pop(relation.relation_id, None)
        if topic not in self._plan.topics:
            if self._settings.tables:
                self._say(f"{name} is published, but was not asked for: it is passed over")
                return
            self._say(
                f"{name} is new in the publication: its changes are written from here on, its "
                "older rows only with --resync"
            )
            settings = self._settings
            await ensure_topic(
                self._cluster, topic, settings.partitions, settings.replication_factor
            )
            self._plan.topics.add(topic)
            self._writer.begin(topic, await how_far(self._cluster, topic))
        key = await self._key(relation)
        if not key:
            self._say(f"{name} has no primary key: its changes are passed over")
            return
        await self._learn_types(relation)
        fields = [Field(column.name, column.type_id) for column in relation.columns]
        table = Table(name, topic, fields, key, self._plan.types)
        self._tailed[relation.relation_id] = Tailed(table, relation.identity == FULL)

    async def write(self, change: Change) -> None:
        tailed = self._tailed.get(change.relation_id)
        if tailed is None:
            return
        self.written += 1
        if change.op == "t":
            await self._end_all(tailed.table, change)
        elif change.new is None:
            assert change.old is not None, "a change has a row"
            await self._end(tailed.table.key(change.old), tailed.table, change)
        else:
            await self._write_new(tailed, change, change.new)

    async def _write_new(self, tailed: Tailed, change: Change, new: Row) -> None:
        table, position = tailed.table, change.position
        key = table.key(new)
        if change.op == "u":
            if change.old is not None and (old_key := table.key(change.old)) != key:
                await self._end(old_key, table, change)
            position = Position(position.lsn, position.change + 1)
        place = self._writer.place(table.topic, key)
        if not self._writer.is_new(place, position):
            return
        if UNCHANGED in new:
            new = await self._fill(tailed, change, new)
        await self._writer.write(
            place,
            key,
            table.value(new),
            op=change.op,
            position=position,
            xid=change.xid,
            ts_ms=change.ts_ms,
        )

    async def _end(self, key: bytes, table: Table, change: Change) -> None:
        place = self._writer.place(table.topic, key)
        if self._writer.is_new(place, change.position):
            await self._write_end(place, key, change, "d")

    async def _write_end(self, place: TopicPartition, key: bytes, change: Change, op: str) -> None:
        await self._writer.write(
            place,
            key,
            None,
            op=op,
            position=change.position,
            xid=change.xid,
            ts_ms=change.ts_ms,
        )

    async def _end_all(self, table: Table, change: Change) -> None:
        """Write a tombstone for every key of the topic. All have one position: a partition at that
        position may be incomplete, and is processed once more.
        """
        await self._writer.flush()
        for place in self._writer.places(table.topic):
            if self._writer.reached(place) > change.position:
                continue
            known = KnownRows()
            try:
                async for message in read_to_end(self._cluster, [place]):
                    if message.key is not None:
                        known.learn(message.key, message.value)
                for key in known.unseen():
                    await self._write_end(place, key, change, "t")
            finally:
                known.close()

    async def _fill(self, tailed: Tailed, change: Change, new: Row) -> Row:
        if tailed.is_full and change.old is not None:
            new = [
                before if value is UNCHANGED else value
                for value, before in zip(new, change.old, strict=True)
            ]
        if UNCHANGED not in new:
            return new
        table = tailed.table
        if table.name not in self._filled:
            self._filled.add(table.name)
            self._say(
                f"{table.name}: a large value that an update does not touch is read from the table "
                f"as it is now; ALTER TABLE {table.name} REPLICA IDENTITY FULL gives it as it was"
            )
        return await self._plan.ask(lambda catalogue: catalogue.filled(table, new))

    async def _key(self, relation: Relation) -> list[str]:
        if relation.identity != FULL:
            return [column.name for column in relation.columns if column.is_key]
        # With FULL each column is marked as key; the catalogue has the real key.
        name = TableName(relation.schema, relation.name)
        found = (await self._plan.ask(Catalogue.tables)).get(name)
        return list(found.key) if found is not None else []

    async def _learn_types(self, relation: Relation) -> None:
        """Look up user-defined types that are not known yet."""
        own = {c.type_id for c in relation.columns if c.type_id >= OWN_TYPES_SINCE}
        if not own <= self._known_types:
            await self._plan.ask(lambda catalogue: catalogue.learn_types(self._plan.types))
            self._known_types |= own
