"""A broker as a process of its own: Ottla, or Apache Kafka as the reference.

Both are started from the same `server.properties`, so that a test runs unchanged against either.
A broker keeps its port and its data directory over `restart`.
"""

import os
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Protocol

from ottla.testing.ports import Ports

# Below the range that the system gives to outgoing connections: a client that retries a port of
# that range while the broker is down may connect to itself, and then the broker cannot come back.
# Many, so that tests which run side by side hardly ever choose the same.
KEPT: list[Ports] = []
START_SECONDS_MAX = 60


class Flavour(Protocol):
    """What differs between the brokers: how to format a directory and how to start."""

    name: str

    def prepare(self, properties: Path) -> None: ...

    def command(self, properties: Path) -> list[str]: ...

    def environment(self, directory: Path) -> dict[str, str]: ...


class Ottla:
    """Ours, from the source tree or wherever this interpreter finds it."""

    name = "ottla"

    def prepare(self, properties: Path) -> None:
        """`start` formats an empty directory of a single node by itself."""

    def command(self, properties: Path) -> list[str]:
        return [sys.executable, "-m", "ottla.cli.main", "start", str(properties)]

    def environment(self, directory: Path) -> dict[str, str]:
        return dict(os.environ)


class BrokerProcess:
    """One broker. `log_file` holds what it printed; `data_directory` is its only `log.dirs`."""

    def __init__(
        self, flavour: Flavour, directory: Path, settings: dict[str, str] | None = None
    ) -> None:
        self.flavour = flavour
        self.directory = directory
        self.data_directory = directory / "data"
        self.log_file = directory / "broker.log"
        self.port, self.controller_port = free_ports(2)
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.settings = self._settings() | (settings or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker was never started"
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, *, wait: bool = True) -> "BrokerProcess":
        assert not self.is_alive, "one process holds the directory"
        self.directory.mkdir(parents=True, exist_ok=True)
        properties = self.directory / "server.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in self.settings.items()))
        self.flavour.prepare(properties)
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self.flavour.command(properties),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.flavour.environment(self.directory),
                cwd=self.directory,
                start_new_session=True,
            )
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while not answers_metadata(self.port):
            if not self.is_alive or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"{self.flavour.name} did not start:\n{self.log_tail()}")
            time.sleep(0.02)

    def stop(self) -> int:
        """A clean shutdown, as by SIGTERM; its exit status."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        self.stop()
        self.start()

    def log_tail(self, lines: int = 30) -> str:
        if not self.log_file.exists():
            return ""
        return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-lines:])

    def _end(self, how: signal.Signals) -> int:
        if self._process is None:
            return 0
        if self._process.poll() is None:
            self._process.send_signal(how)
        try:
            return self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError(
                f"{self.flavour.name} did not end within 30 s:\n{self.log_tail()}"
            ) from None

    def _settings(self) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},"
            f"CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(self.data_directory),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
        }


def free_ports(count: int) -> list[int]:
    """Ports that are this process's as long as it lives."""
    ports = Ports(count)
    KEPT.append(ports)
    return ports.numbers


def answers_metadata(port: int, host: str = "127.0.0.1") -> bool:
    """Whether a broker at `port` knows of a broker: before that, clients get nowhere."""
    request = struct.pack(">hhihi", 3, 1, 1, -1, 0)
    try:
        with socket.create_connection((host, port), 1) as connection:
            connection.settimeout(2)
            connection.sendall(struct.pack(">i", len(request)) + request)
            answer = connection.recv(12, socket.MSG_WAITALL)
            return len(answer) == 12 and struct.unpack_from(">i", answer, 8)[0] > 0
    except OSError:
        return False
