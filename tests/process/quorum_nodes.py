"""Three nodes of one quorum, each a real process: brokers and controllers at once."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ottla.client.blocking import Client
from ottla.client.errors import ClientError
from ottla.model.types import uuid_text
from tests.conformance.broker_process import BrokerProcess, Ottla

CLUSTER_ID = "aZSxcrjtRrO_dWhnyP37Bw"
OTTLA = [sys.executable, "-m", "ottla.cli.main"]
WAIT_SECONDS_MAX = 60


class FormattedOttla(Ottla):
    """A voter among several is formatted by a person, never by itself."""

    def __init__(self) -> None:
        self.options: list[str] = []

    def prepare(self, properties: Path) -> None:
        format_ = [*OTTLA, "format", "-t", CLUSTER_ID, "-c", str(properties), "-g", *self.options]
        subprocess.run(format_, check=True, capture_output=True, timeout=60)


class Nodes:
    """Static voters, or dynamic ones: then `joining` more are there that do not vote yet."""

    def __init__(self, directory: Path, joining: int | None = None) -> None:
        count = 3 + (joining or 0)
        self.flavours = {number: FormattedOttla() for number in range(1, count + 1)}
        self.all = {
            number: BrokerProcess(flavour, directory / f"node{number}")
            for number, flavour in self.flavours.items()
        }
        controllers = {n: f"127.0.0.1:{node.controller_port}" for n, node in self.all.items()}
        for number, node in self.all.items():
            node.settings |= {"node.id": str(number), "offsets.topic.replication.factor": "3"}
            if joining is None:
                voters = ",".join(f"{n}@{where}" for n, where in controllers.items())
                node.settings["controller.quorum.voters"] = voters
            else:
                del node.settings["controller.quorum.voters"]
                servers = ",".join(controllers.values())
                node.settings["controller.quorum.bootstrap.servers"] = servers
        if joining is not None:
            voters = ",".join(f"{n}@{controllers[n]}:{_directory_id(n)}" for n in (1, 2, 3))
            for number, flavour in self.flavours.items():
                first = ["--initial-controllers", voters]
                flavour.options = first if number <= 3 else ["--no-initial-controllers"]

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self.all.values())

    def start(self, *numbers: int) -> None:
        nodes = [self.all[number] for number in numbers or self.all]
        for node in nodes:
            node.start(wait=False)
        for node in nodes:
            node.wait_ready()

    def leader(self, asked: int | None = None) -> int:
        """The active controller, as a living broker says."""
        living = [n for n, node in self.all.items() if node.is_alive]
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while True:
            try:
                with Client(self.all[asked or living[0]].bootstrap) as client:
                    return client.run(client.admin.quorum()).leader_id
            except ClientError:
                assert time.monotonic() < deadline, "nobody leads"

    def topics(self, number: int) -> set[str]:
        with Client(self.all[number].bootstrap) as client:
            topics = client.run(client.admin.describe_topics())
            return {topic.name for topic in topics if topic.name}

    def wait_topics(self, number: int, *names: str) -> None:
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while self.topics(number) != set(names):
            assert time.monotonic() < deadline, f"node {number} knows {self.topics(number)}"
            time.sleep(0.05)


def _directory_id(number: int) -> str:
    return uuid_text(bytes([number]) * 16)


@contextmanager
def running(directory: Path, joining: int | None = None) -> Iterator[Nodes]:
    nodes = Nodes(directory, joining)
    try:
        nodes.start()
        yield nodes
    finally:
        for node in nodes.all.values():
            node.kill()
