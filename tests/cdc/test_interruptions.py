"""Killed anywhere, a tail goes on: every committed change of every key is there once, in order.

OTTLA_CDC_SECONDS says for how long tails are killed under load (10 by default).
"""

import os
import random
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Iterator

import psycopg2
import pytest

from ottla.client.message import Message
from ottla.testing import Broker
from tests.cdc.tail_process import World, as_json, header
from tests.postgres import PostgresServer

SECONDS = float(os.environ.get("OTTLA_CDC_SECONDS", "10"))
KEYS = 40
TABLES = ("public.t", "public.u")


class Load:
    """Commits of one to many changes over two tables; remembers each change of each key."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.random = random.Random(seed)
        self.history: dict[tuple[str, int], list[int | None]] = defaultdict(list)
        self._version = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        for table in TABLES:
            world.sql(f"CREATE TABLE {table} (id int PRIMARY KEY, version int, filler text)")

    def start(self) -> "Load":
        self._thread.start()
        return self

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def commit(self) -> None:
        """One transaction; if its fate is not known, the database is asked."""
        with self.world.server.connect(self.world.name) as connection:
            connection.autocommit = False
            done: list[tuple[tuple[str, int], int | None]] = []
            with connection.cursor() as cursor:
                for _ in range(self.random.choice([1, 1, 1, 2, 5, 200])):
                    done.append(self._change(cursor, done))
            connection.commit()
        connection.close()
        for key, version in done:
            self.history[key].append(version)

    def _change(
        self, cursor: "psycopg2.extensions.cursor", done: list[tuple[tuple[str, int], int | None]]
    ) -> tuple[tuple[str, int], int | None]:
        key = (self.random.choice(TABLES), self.random.randrange(KEYS))
        before = [version for other, version in done if other == key] or self.history[key][-1:]
        table, number = key
        if before and before[-1] is not None and self.random.random() < 0.2:
            cursor.execute(f"DELETE FROM {table} WHERE id = %s", (number,))
            return key, None
        self._version += 1
        filler = "." * self.random.choice([0, 10, 300])
        cursor.execute(
            f"INSERT INTO {table} VALUES (%s, %s, %s) ON CONFLICT (id)"
            " DO UPDATE SET version = excluded.version, filler = excluded.filler",
            (number, self._version, filler),
        )
        return key, self._version

    def _run(self) -> None:
        while not self._stop.is_set():
            self.commit()
            time.sleep(0.002)

    def check(self) -> int:
        """Each key's records are its changes, from the first or from what the snapshot saw on."""
        found: dict[tuple[str, int], list[Message]] = defaultdict(list)
        for table in TABLES:
            for message in self.world.messages(table):
                found[table, as_json(message.key or b"")["id"]].append(message)
        for key, messages in found.items():
            versions = [None if m.value is None else as_json(m.value)["version"] for m in messages]
            expected = self.history[key]
            assert versions == expected[len(expected) - len(versions) :], key
            assert header(messages[0], "op") in {"r", "c"}, "its first changes are missing"
        for key, history in self.history.items():
            assert key in found or history[-1] is None, f"{key} is missing"
        return sum(len(messages) for messages in found.values())


@pytest.fixture
def load(world: World) -> Iterator[Load]:
    load = Load(world, seed=1)
    yield load
    if load._thread.is_alive():
        load.stop()


@pytest.mark.timeout(SECONDS + 120)
def test_a_tail_killed_at_any_moment_loses_nothing_and_repeats_nothing(load: Load) -> None:
    world, chance = load.world, random.Random(2)
    for _ in range(20):
        load.commit()
    load.start()
    world.catch_up("-p", "3")  # The snapshot is taken while the tables change.
    deadline = time.monotonic() + SECONDS
    kills = 0
    while time.monotonic() < deadline:
        before = world.written(*TABLES)
        process = world.start()
        while world.written(*TABLES) == before:  # It writes; it has not confirmed much of it.
            assert process.poll() is None, world.log.read_text()
        time.sleep(chance.choice([0, 0, chance.uniform(0, 1.5)]))
        how = signal.SIGTERM if kills % 5 == 4 else signal.SIGKILL
        assert world.kill(process, how) == (0 if how is signal.SIGTERM else -how)
        kills += 1
    load.stop()
    world.catch_up()
    assert load.check() > 100
    for table in TABLES:
        assert world.folded(table) == world.selected(table)


@pytest.mark.timeout(120)
def test_a_broker_that_is_killed_and_comes_back_gets_every_change_once(
    server: PostgresServer,
) -> None:
    with Broker(process=True) as broker:
        world = World(server, broker, "killed_broker")
        load = Load(world, seed=3)
        try:
            load.commit()
            world.catch_up("-p", "2")
            process = world.start()
            world.wait_until_following(process)
            load.start()
            for seconds in (0.5, 0.5, 7):  # Longer than a client looks for a topic.
                time.sleep(1.5)
                broker.kill()
                time.sleep(seconds)
                broker.start()
            time.sleep(1)
            load.stop()
            assert world.kill(process, signal.SIGTERM) == 0, world.log.read_text()
            world.catch_up()
            assert load.check() > 100
        finally:
            load._stop.set()
            world.close()


@pytest.mark.timeout(120)
def test_what_no_broker_has_acknowledged_is_not_confirmed_to_the_database(
    server: PostgresServer,
) -> None:
    with Broker(process=True) as broker:
        world = World(server, broker, "unacknowledged")
        try:
            load = Load(world, seed=6)
            load.commit()
            world.catch_up("-p", "2")
            process = world.start()
            world.wait_until_following(process)
            broker.kill()
            for _ in range(20):
                load.commit()
            time.sleep(2.5)  # It has read them, and told the database how far it is.
            world.kill(process)
            broker.start()
            world.catch_up()
            load.check()
            for table in TABLES:
                assert world.folded(table) == world.selected(table)
        finally:
            world.close()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
@pytest.mark.slow
def test_a_tail_waits_for_a_database_that_comes_back(how: signal.Signals) -> None:
    server = PostgresServer(synchronous_commit="on")
    try:
        server.start()
        with Broker(process=True) as broker:
            world = World(server, broker, "restarted")
            load = Load(world, seed=4)
            for _ in range(20):
                load.commit()
            world.catch_up("-p", "2")
            process = world.start()
            world.wait_until_following(process)
            for _ in range(2):
                for _ in range(30):
                    load.commit()
                server.stop(how)
                server.start()
            for _ in range(30):
                load.commit()
            for table in TABLES:
                world.wait_until_equal(table)
            assert process.poll() is None, world.log.read_text()
            assert world.kill(process, signal.SIGTERM) == 0
            assert load.check() > 100
    finally:
        server.close()


@pytest.mark.timeout(120)
def test_a_snapshot_that_was_interrupted_goes_on_with_what_differs(world: World) -> None:
    world.sql("CREATE TABLE t (id int PRIMARY KEY, v text)")
    world.sql("INSERT INTO t SELECT i, repeat('x', 200) FROM generate_series(1, 30000) i")
    chance = random.Random(5)
    interrupted = 0
    for attempt in range(6):
        process = world.start("-p", "2")
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and process.poll() is None:
            if f"{world.name}.public.t" in world.broker.topics() and len(world.messages()) > 0:
                break
        time.sleep(chance.uniform(0, 0.3))
        world.kill(process)
        slots = world.sql("SELECT 1 FROM pg_replication_slots WHERE slot_name = %s", world.name)
        if slots:
            break
        interrupted += len(world.messages()) > 0
        world.sql("DELETE FROM t WHERE id %% 10 = %s", attempt)
        world.sql("UPDATE t SET v = %s WHERE id %% 100 = %s", f"changed {attempt}", attempt + 20)
    world.catch_up("-p", "2")
    assert interrupted, "no kill came while rows were written"
    assert world.folded() == world.selected()
    last: dict[bytes, bytes | None] = {}
    for message in world.messages():
        assert message.key is not None
        assert last.get(message.key, b"nothing") != message.value, "written again though the same"
        last[message.key] = message.value


def test_a_truncation_that_was_interrupted_ends_the_other_keys_once(world: World) -> None:
    world.sql("CREATE TABLE t (id int PRIMARY KEY)")
    world.sql("INSERT INTO t SELECT generate_series(1, 300)")
    world.catch_up("-p", "2")
    world.sql("TRUNCATE t; INSERT INTO t VALUES (1)")
    process = world.start()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and len(world.messages()) == 300:
        pass
    world.kill(process)
    world.catch_up()
    assert world.folded() == world.selected()
    ended = [m.key for m in world.messages() if m.value is None]
    assert len(ended) == len(set(ended)) == 300


@pytest.mark.timeout(150)
@pytest.mark.slow
def test_a_commit_larger_than_the_buffers_is_followed_with_little_memory(world: World) -> None:
    import psutil

    world.sql("CREATE TABLE t (id int PRIMARY KEY, v text)")
    world.catch_up("-p", "1")
    world.sql("INSERT INTO t SELECT i, repeat(md5(i::text), 90) FROM generate_series(1, 30000) i")
    process = world.start()
    biggest = 0
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        biggest = max(biggest, psutil.Process(process.pid).memory_info().rss)
        if world.sql(
            "SELECT confirmed_flush_lsn >= pg_current_wal_lsn() FROM pg_replication_slots"
            " WHERE slot_name = %s",
            world.name,
        ) == [(True,)]:
            break
        time.sleep(0.1)
    world.kill(process)
    assert len(world.folded()) == 30_000
    assert biggest < 150 * 2**20, f"of 86 MB of changes {biggest:,} bytes were held at once"
