"""The nodes of a run: real processes of `ottla start`, with their logs and data beside them."""

import signal
import subprocess
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from random import SystemRandom

from ottla.broker.node.local_cluster import LocalCluster, Node
from ottla.env.clock import RealClock
from ottla.env.disk import real_disk
from ottla.model.types import NodeId
from tests.chaos.wiring import Wiring
from tests.conformance.broker_process import answers_metadata

START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 30


class Nodes:
    def __init__(
        self, directory: Path, wiring: Wiring, count: int, settings: Mapping[str, str]
    ) -> None:
        self.ids = list(range(1, count + 1))
        self.wiring = wiring
        self.directory = directory
        self._cluster = LocalCluster([self._node(node_id) for node_id in self.ids], rack="machine")
        self._nodes = {int(node.id): node for node in self._cluster.nodes}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self.stopped: set[int] = set()  # By SIGSTOP.
        random_bytes = SystemRandom().randbytes
        self._cluster.prepare(real_disk(), settings, RealClock().wall(), random_bytes)

    def _node(self, node_id: int) -> Node:
        place = self.wiring.place(node_id)
        directory = str(self.directory / f"node-{node_id}")
        return Node(NodeId(node_id), directory, place.host, place.port, place.controller_port)

    @property
    def bootstrap(self) -> str:
        return self._cluster.bootstrap_servers

    def log_directory(self, node_id: int) -> Path:
        return Path(self._nodes[node_id].log_directory)

    def log_file(self, node_id: int) -> Path:
        """What the node printed; outside of its data, which may lose power."""
        return self.directory / f"node-{node_id}.log"

    def pid(self, node_id: int) -> int:
        return self._processes[node_id].pid

    def is_alive(self, node_id: int) -> bool:
        return node_id in self._processes and self._processes[node_id].poll() is None

    def require_alive(self, node_ids: Collection[int]) -> None:
        for node_id in node_ids:
            status = self._processes[node_id].poll()
            if status is not None:
                said = self.log_file(node_id).read_text(errors="replace")[-2000:]
                raise AssertionError(f"node {node_id} ended by itself, status {status}:\n{said}")

    def start(self, *node_ids: int) -> None:
        for node_id in node_ids or self.ids:
            assert not self.is_alive(node_id), "one process holds the directory"
            with self.log_file(node_id).open("ab") as log:
                self._processes[node_id] = subprocess.Popen(
                    [*self.wiring.place(node_id).command, self._nodes[node_id].properties_file],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )

    def wait_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        for node_id, node in self._nodes.items():
            while not answers_metadata(node.port, node.host):
                self.require_alive([node_id])
                if time.monotonic() > deadline:
                    said = self.log_file(node_id).read_text(errors="replace")[-2000:]
                    raise AssertionError(f"node {node_id} did not start:\n{said}")
                time.sleep(0.05)

    def kill(self, *node_ids: int) -> None:
        """As `kill -9`; of several, none outlives the others by more than a moment."""
        for node_id in node_ids:
            if self.is_alive(node_id):
                self._processes[node_id].kill()
        for node_id in node_ids:
            if node_id in self._processes:
                self._processes[node_id].wait()
            self.stopped.discard(node_id)

    def pause(self, node_id: int) -> None:
        self._processes[node_id].send_signal(signal.SIGSTOP)
        self.stopped.add(node_id)

    def resume(self, node_id: int) -> None:
        self._processes[node_id].send_signal(signal.SIGCONT)
        self.stopped.discard(node_id)

    def stop(self, node_id: int) -> None:
        """Cleanly: it hands over what it leads first."""
        process = self._processes[node_id]
        process.terminate()
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill(node_id)
            raise AssertionError(f"node {node_id} did not stop in {STOP_SECONDS_MAX} s") from None
