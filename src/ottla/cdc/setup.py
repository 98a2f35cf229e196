"""Preparations of a tail: server checks, publication, topics.

Everything created is reported, and nothing is guessed: what may be a mistake (a missing slot, a
topic ahead of its database) is refused, naming the option that allows it.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from ottla.cdc.catalogue import NOTHING, Catalogue, Found, Published, publishing
from ottla.cdc.errors import Interrupted, NotPossible
from ottla.cdc.json_text import Types
from ottla.cdc.position import Position, lsn_text
from ottla.cdc.postgres import Connection, connect
from ottla.cdc.progress import Say
from ottla.cdc.rights import check_publishing, check_reading
from ottla.cdc.settings import TailSettings
from ottla.cdc.table import Table, TableName, topic_name
from ottla.cdc.topics import ensure_topic, how_far, is_compacted
from ottla.cdc.writer import Writer
from ottla.client.cluster import Cluster

Answer = TypeVar("Answer")

SCHEMA_DEFAULT = "public"


@dataclass(slots=True)
class Plan:
    dsn: str
    connection: Connection
    types: Types
    prefix: str
    has_slot: bool
    tables: list[Found]
    published: dict[TableName, Published]
    topics: set[str]

    def topic(self, table: TableName) -> str:
        return topic_name(self.prefix, table)

    async def ask(self, question: Callable[[Catalogue], Answer]) -> Answer:
        """Query the catalogue; if the connection is lost, once more over a new one."""
        try:
            return await asyncio.to_thread(question, Catalogue(self.connection))
        except Interrupted:
            self.connection.close()
            self.connection = await asyncio.to_thread(connect, self.dsn)
            return await asyncio.to_thread(question, Catalogue(self.connection))

    async def current_tables(self) -> list[Table]:
        """The current tables, for a snapshot."""

        def look(catalogue: Catalogue) -> list[Table]:
            catalogue.learn_types(self.types)
            return [self._table(found, catalogue) for found in self.tables]

        return await self.ask(look)

    async def begin(self, writer: Writer, *, in_next_epoch: bool = False) -> None:
        """Read the positions from the topics; call only as owner of the slot."""
        for topic in sorted(self.topics):
            writer.begin(topic, await how_far(writer.cluster, topic, in_next_epoch=in_next_epoch))

    def close(self) -> None:
        self.connection.close()

    def _table(self, found: Found, catalogue: Catalogue) -> Table:
        fields = catalogue.fields(found.oid, self.published[found.name])
        return Table(found.name, self.topic(found.name), fields, found.key, self.types)


async def prepare(cluster: Cluster, settings: TailSettings, say: Say) -> Plan:
    """Check everything and create what is missing, except for the slot."""
    connection = await asyncio.to_thread(connect, settings.dsn)
    try:
        return await _prepare(cluster, settings, say, connection)
    except BaseException:
        connection.close()
        raise


async def _prepare(
    cluster: Cluster, settings: TailSettings, say: Say, connection: Connection
) -> Plan:
    catalogue = Catalogue(connection)
    await asyncio.to_thread(catalogue.check)
    await cluster.refresh()  # Before anything is created: check that a broker is reachable.
    published, tables = await asyncio.to_thread(publish, catalogue, settings, say)
    prefix = settings.prefix or catalogue.database
    slot = await asyncio.to_thread(catalogue.slot, settings.slot)
    if slot is None or settings.is_resync:
        await asyncio.to_thread(check_reading, catalogue, tables)
    types = Types()
    await asyncio.to_thread(catalogue.learn_types, types)
    plan = Plan(settings.dsn, connection, types, prefix, slot is not None, tables, published, set())
    _check_names(plan)
    positions: list[Position] = []
    for found in tables:
        positions += await _prepare_topic(cluster, settings, plan.topic(found.name), plan, say)
    if slot is not None and (slot.plugin, slot.database) != ("pgoutput", catalogue.database):
        raise NotPossible(
            f"slot {settings.slot!r} is of plugin {slot.plugin!r} in database {slot.database!r}: "
            "choose another name with --slot"
        )
    wal_lsn = await asyncio.to_thread(catalogue.wal_lsn)
    _check_slot(settings, plan, positions, wal_lsn, is_lost=slot is not None and slot.is_lost)
    if slot is not None and settings.is_resync:
        say(f"dropping slot {settings.slot}: the tables are compared with their topics")
        await asyncio.to_thread(catalogue.drop_slot, settings.slot)
        plan.has_slot = False
    if not plan.has_slot:
        say(f"slot {settings.slot} will be made when the snapshot is complete")
    return plan


def publish(
    catalogue: Catalogue, settings: TailSettings, say: Say
) -> tuple[dict[TableName, Published], list[Found]]:
    """Create the publication if it is missing; returns its tailed tables."""
    existing = catalogue.tables()
    wanted = [_named(text, existing) for text in settings.tables]
    published = catalogue.published(settings.publication)
    if published is None:
        chosen = wanted or _with_keys(existing.values(), say)
        statement = publishing(settings.publication, chosen, is_new=True)
        check_publishing(catalogue, [existing[table] for table in chosen], statement)
        say(
            f"creating publication {settings.publication} for "
            + ", ".join(str(table) for table in chosen)
        )
        catalogue.run(statement)
    elif missing := [table for table in wanted if table not in published]:
        names = ", ".join(str(table) for table in missing)
        if not settings.is_resync:
            raise NotPossible(
                f"publication {settings.publication!r} has no {names}: with --resync it is added, "
                "and its rows are written like those of a new slot"
            )
        statement = publishing(settings.publication, missing, is_new=False)
        check_publishing(catalogue, [existing[table] for table in missing], statement)
        say(f"adding {names} to publication {settings.publication}")
        catalogue.run(statement)
    published = catalogue.published(settings.publication) or {}
    tailed = wanted or sorted(published)
    for table in tailed:
        if table not in existing:
            raise NotPossible(
                f"publication {settings.publication!r} has {table}, which is a partition or "
                "cannot be read: name the tables that you want"
            )
        _check_key(existing[table])
    if not tailed:
        raise NotPossible(f"publication {settings.publication!r} has no tables")
    return published, [existing[table] for table in tailed]


def _named(text: str, existing: dict[TableName, Found]) -> TableName:
    schema, dot, name = text.partition(".")
    table = TableName(schema, name) if dot else TableName(SCHEMA_DEFAULT, text)
    if table not in existing:
        from difflib import get_close_matches

        near = get_close_matches(str(table), [str(other) for other in existing], 1)
        raise NotPossible(
            f"there is no table {table}" + (f"; did you mean {near[0]}?" if near else "")
        )
    _check_key(existing[table])
    return table


def _with_keys(tables: Iterable[Found], say: Say) -> list[TableName]:
    chosen = []
    for found in tables:
        if found.key:
            chosen.append(found.name)
        else:
            say(f"{found.name} {_why_no_key(found)}: it is left out")
    if not chosen:
        raise NotPossible("there is no table with a primary key in this database")
    return chosen


def _check_key(found: Found) -> None:
    if not found.key:
        raise NotPossible(
            f"{found.name} {_why_no_key(found)}, so its records would have no key: add one, "
            f"or ALTER TABLE {found.name} REPLICA IDENTITY USING INDEX of a unique index"
        )


def _why_no_key(found: Found) -> str:
    return "has REPLICA IDENTITY NOTHING" if found.identity == NOTHING else "has no primary key"


def _check_names(plan: Plan) -> None:
    topics: dict[str, TableName] = {}
    for found in plan.tables:
        topic = plan.topic(found.name)
        if topic in topics:
            raise NotPossible(f"{topics[topic]} and {found.name} would share the topic {topic}")
        topics[topic] = found.name


async def _prepare_topic(
    cluster: Cluster, settings: TailSettings, topic: str, plan: Plan, say: Say
) -> list[Position]:
    """Create the topic if it is missing; returns its positions, unless a tail writes to it."""
    if await ensure_topic(cluster, topic, settings.partitions, settings.replication_factor):
        say(f"created topic {topic}, compacted")
    elif not await is_compacted(cluster, topic):
        say(f"topic {topic} is not compacted: rows that rarely change will be removed from it")
    plan.topics.add(topic)
    return [reached.position for reached in (await how_far(cluster, topic)).values()]


def _check_slot(
    settings: TailSettings, plan: Plan, positions: list[Position], wal_lsn: int, *, is_lost: bool
) -> None:
    """Refuse to continue if changes would be missing."""
    last = max(positions)
    if last.lsn > wal_lsn:
        raise NotPossible(
            f"the topics hold changes up to {lsn_text(last.lsn)}, and the server's log is not "
            "that far: it is another server, or a restored one; choose another --prefix"
        )
    if settings.is_resync:
        return
    if is_lost:
        raise NotPossible(
            f"the server has dropped the log that slot {settings.slot!r} still needed: --resync "
            "makes a new slot and writes what differs between the tables and their topics"
        )
    if not plan.has_slot and any(item.lsn >= 0 and not item.is_snapshot for item in positions):
        raise NotPossible(
            f"the topics hold changes up to {lsn_text(last.lsn)}, but slot {settings.slot!r} is "
            "gone, and the changes since then with it: --resync makes a new slot and writes what "
            "differs between the tables and their topics"
        )
