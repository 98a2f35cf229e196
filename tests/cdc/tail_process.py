"""A database with a tail of it, as their user has them: SQL in, `ottla cdc` beside, topics out."""

import json
import os
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg2

from ottla.client.blocking import Client
from ottla.client.message import Message
from ottla.client.offsets import LATEST, find_offsets
from ottla.model.types import TopicPartition
from ottla.testing import Broker
from tests.postgres import PostgresServer, end_with_parent

WAIT_SECONDS_MAX = 40
STARTED = "--- started\n"


class World:
    """The name of the database is also that of slot, publication and prefix."""

    def __init__(self, server: PostgresServer, broker: Broker, name: str) -> None:
        self.server = server
        self.broker = broker
        self.name = name
        self._running: list[subprocess.Popen[str]] = []
        server.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        self._sql = server.connect(name)

    def close(self) -> None:
        for process in self._running:
            self.kill(process)
        self._sql.close()
        drop = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while self.server.execute(f"SELECT 1 FROM pg_stat_activity WHERE datname = '{self.name}'"):
            assert time.monotonic() < deadline, "a killed tail's connections end"
            time.sleep(0.05)
        self.server.execute(f"{drop} WHERE database = '{self.name}'")
        self.server.execute(f"DROP DATABASE {self.name} WITH (FORCE)")

    def sql(self, statement: str, *arguments: object) -> list[Any]:
        try:
            return self._do(statement, arguments)
        except psycopg2.OperationalError:  # The server was restarted meanwhile.
            self._sql = self.server.connect(self.name)
            return self._do(statement, arguments)

    def _do(self, statement: str, arguments: tuple[object, ...]) -> list[Any]:
        with self._sql.cursor() as cursor:
            cursor.execute(statement, arguments or None)
            return cursor.fetchall() if cursor.description else []

    def command(self, *arguments: str) -> list[str]:
        names = ("--slot", self.name, "--publication", self.name, "--prefix", self.name)
        return [
            *(sys.executable, "-m", "ottla.cli.main", "cdc", "postgres"),
            *(self.server.dsn(self.name), *names, "-b", self.broker.bootstrap_servers),
            *arguments,
        ]

    def catch_up(self, *arguments: str) -> str:
        """Let a tail run to where the database is now; what it said."""
        done = self.run("--to-end", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            self.command(*arguments),
            capture_output=True,
            text=True,
            check=False,
            timeout=WAIT_SECONDS_MAX,
        )

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        with self.log.open("a") as log:
            log.write(STARTED)
            log.flush()
            process = subprocess.Popen(
                self.command(*arguments),
                stdout=log,
                stderr=log,
                text=True,
                preexec_fn=end_with_parent,
            )
        self._running.append(process)
        return process

    @property
    def log(self) -> Path:
        """What the tails said that were started."""
        return self.server.directory / f"{self.name}.log"

    def kill(
        self, process: "subprocess.Popen[str]", how: signal.Signals = signal.SIGKILL
    ) -> int | None:
        if process.poll() is None:
            os.kill(process.pid, how)
        return process.wait(WAIT_SECONDS_MAX)

    def wait_until_following(self, process: "subprocess.Popen[str]") -> None:
        """Until the tail that was started last follows its slot."""
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while not self.log.read_text().rpartition(STARTED)[2].count("following slot"):
            assert process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)

    def wait_until_said(self, text: str) -> None:
        """Until one of the tails that were started has said this."""
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while text not in self.log.read_text():
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)

    def take_slot_away(self) -> None:
        """End the connection by which a tail owns the slot."""
        slot = "FROM pg_replication_slots WHERE slot_name = %s AND active"
        self.sql(f"SELECT pg_terminate_backend(active_pid) {slot}", self.name)
        while self.sql(f"SELECT 1 {slot}", self.name):
            time.sleep(0.05)

    # What came out.

    def written(self, *tables: str) -> int:
        """How many records there are."""
        topics = [f"{self.name}.{table}" for table in tables]
        with Client(self.broker.bootstrap_servers) as client:
            places = [
                TopicPartition(topic, partition)
                for topic in topics
                for partition in client.run(client.cluster.topic(topic)).partitions
            ]
            wanted = dict.fromkeys(places, LATEST)
            ends = client.run(find_offsets(client.cluster, wanted))
            return sum(found.offset for found in ends.values())

    def messages(self, table: str = "public.t") -> list[Message]:
        """Of all partitions, each in its order."""
        topic = f"{self.name}.{table}"
        with Client(self.broker.bootstrap_servers) as client:
            known = client.run(client.cluster.topic(topic))
            start = dict.fromkeys((TopicPartition(topic, index) for index in known.partitions), 0)
            return list(client.read(start, to_end=True))

    def folded(self, table: str = "public.t") -> dict[str, Any]:
        """The table that the topic describes, by the text of its keys."""
        rows: dict[str, Any] = {}
        for message in self.messages(table):
            assert message.key is not None
            if message.value is None:
                rows.pop(message.key.decode(), None)
            else:
                rows[message.key.decode()] = as_json(message.value)
        return rows

    def selected(self, table: str = "public.t", key: tuple[str, ...] = ("id",)) -> dict[str, Any]:
        """The table as PostgreSQL itself writes it in JSON."""
        self.sql("SET timezone = 'UTC'")
        rows = [
            as_json(text) for (text,) in self.sql(f"SELECT row_to_json(t)::text FROM {table} t")
        ]
        return {
            json.dumps({name: row[name] for name in key}, separators=(",", ":")): row
            for row in rows
        }

    def wait_until_equal(self, table: str = "public.t") -> None:
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while self.folded(table) != self.selected(table):
            assert time.monotonic() < deadline, "the topic never says what the table does"
            time.sleep(0.2)


def as_json(text: str | bytes) -> Any:  # noqa: ANN401  Whatever it is.
    """Numbers keep all of their digits."""
    return json.loads(text, parse_float=Decimal)


def header(message: Message, name: str) -> str:
    return (dict(message.headers)[name] or b"").decode()
