"""`ottla up --brokers N`: a local cluster with a process for each node.

Each child is an `ottla start` with the settings file beside its data. Its log is passed on with the
node's id, as a prefix or as a field of a JSON line. Nodes are stopped one after the other, so that
each can hand over its leaderships.
"""

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Mapping
from random import SystemRandom
from typing import IO

from ottla import __version__
from ottla.broker.node.local_cluster import LocalCluster, Node
from ottla.broker.node.log_lines import JSON, json_line
from ottla.broker.settings.error import SettingsError
from ottla.env.clock import RealClock
from ottla.env.disk import real_disk
from ottla.model.errors import FormatRefused

STOP_SECONDS_MAX = 30.0
READY = f"Ottla {__version__} serves"  # In the first line of a node's banner.
FORM = "ottla.log.format"


def run_nodes(cluster: LocalCluster, changes: Mapping[str, str]) -> None:
    """Start all nodes, print their addresses, and run until a signal."""
    try:
        done = cluster.prepare(real_disk(), changes, RealClock().wall(), SystemRandom().randbytes)
    except FormatRefused as refused:
        raise SettingsError(str(refused)) from refused
    except OSError as error:
        raise SettingsError(f"{error.filename}: {error.strerror}.") from error
    is_json = changes.get(FORM) == JSON
    for line in done:
        print(json_line(line) if is_json else line, file=sys.stderr)
    nodes = Nodes(cluster, is_json=is_json)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: nodes.stop_soon())
    nodes.run()


class Nodes:
    def __init__(self, cluster: LocalCluster, *, is_json: bool = False) -> None:
        self._cluster = cluster
        self._is_json = is_json
        self._running: dict[Node, subprocess.Popen[str]] = {}
        self._ready: set[Node] = set()
        self._changed = threading.Condition()
        self._is_stopping = False

    def run(self) -> None:
        for node in self._cluster.nodes:
            self._start(node)
        with self._changed:
            self._changed.wait_for(self._are_all_ready_or_over)
            if not self._is_stopping and self._running:
                self._announce()
            self._changed.wait_for(lambda: self._is_stopping or not self._running)
        if not self._is_stopping:
            sentence = "every node has ended: the lines above say why."
            if not self._is_json:
                raise SettingsError(sentence)
            print(json_line(sentence, logging.ERROR), file=sys.stderr)
            sys.exit(1)
        self._stop()

    def stop_soon(self) -> None:
        # Called by a signal handler, which may have interrupted a holder of the lock.
        threading.Thread(target=self._stop_now).start()

    def _stop_now(self) -> None:
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()

    def _are_all_ready_or_over(self) -> bool:
        return self._is_stopping or all(node in self._ready for node in self._running)

    def _start(self, node: Node) -> None:
        child = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "ottla.cli.main", "start", node.properties_file],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Ctrl-C is handled by the parent, which stops them one after the other.
            start_new_session=True,
        )
        self._running[node] = child
        assert child.stdout is not None, "it was made with pipes"
        assert child.stderr is not None, "it was made with pipes"
        listening = [
            threading.Thread(target=_listen, args=(pipe, node, line_read), daemon=True)
            for pipe, line_read in ((child.stdout, self._said), (child.stderr, self._logged))
        ]
        for thread in listening:
            thread.start()
        threading.Thread(target=self._watch, args=(node, child, listening), daemon=True).start()

    def _said(self, node: Node, line: str) -> None:
        if READY in line:
            with self._changed:
                self._ready.add(node)
                self._changed.notify_all()

    def _logged(self, node: Node, line: str) -> None:
        print(self._with_id(node, line), file=sys.stderr, flush=True)

    def _with_id(self, node: Node, line: str) -> str:
        if not self._is_json:
            return f"[{node.id}] {line}"
        if not line.startswith("{"):  # Not of the node's log: a trace of the interpreter.
            line = json_line(line, logging.ERROR)
        return f'{{"node": {node.id}, {line[1:]}'

    def _watch(
        self, node: Node, child: "subprocess.Popen[str]", listening: list[threading.Thread]
    ) -> None:
        status = child.wait()
        for thread in listening:
            thread.join()
        with self._changed:
            if not self._is_stopping:
                self._logged(
                    node,
                    f"node {node.id} ended with status {status}; start it again with: "
                    f"ottla start {node.properties_file}",
                )
            del self._running[node]
            self._changed.notify_all()

    def _announce(self) -> None:
        lines = banner(self._cluster, self._ready & set(self._running))
        for line in [json_line(lines[0])] if self._is_json else lines:
            print(line)
        sys.stdout.flush()

    def _stop(self) -> None:
        for child in list(self._running.values()):
            child.terminate()
            try:
                child.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                child.kill()
        with self._changed:
            self._changed.wait_for(lambda: not self._running)


def banner(cluster: LocalCluster, serving: Collection[Node]) -> list[str]:
    """The banner once every node serves or has ended."""
    first = cluster.bootstrap_servers.partition(",")[0]
    there = "" if first == "127.0.0.1:9092" else f" -b {first}"
    nodes = [
        f"  node {node.id}   {node.host}:{node.port}, data {os.path.abspath(node.log_directory)}"
        + ("" if node in serving else " (ended: see above)")
        for node in cluster.nodes
    ]
    return [
        f"Ottla {__version__}: {len(serving)} brokers serve Kafka clients on "
        f"{cluster.bootstrap_servers}",
        *nodes,
        f"  look     ottla cluster{there}",
        f"  produce  echo hello | ottla produce{there} greetings",
        f"  consume  ottla consume{there} greetings --from-beginning",
        "  stop     Ctrl-C",
    ]


def _listen(pipe: IO[str], node: Node, line_read: Callable[[Node, str], None]) -> None:
    with pipe:
        for line in pipe:
            line_read(node, line.rstrip("\n"))
