"""One chaos run: a cluster and its clients, faults, the end of the faults, and the verdict."""

import logging
import random
import time
from collections.abc import Callable
from pathlib import Path
from traceback import format_exc

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.markup import escape

from tests.chaos.clients import Setting
from tests.chaos.confluent_clients import drain
from tests.chaos.faults import Nemesis
from tests.chaos.nodes import Nodes
from tests.chaos.picture import draw
from tests.chaos.recorder import Recorder
from tests.chaos.tables import faults_table, operations_table
from tests.chaos.verdict import SECOND, Verdict, differing_replicas, judge, left_out
from tests.chaos.workload import GROUPS, Workload

NODES = 3
TOPIC = "chaos"
PARTITIONS = 4
SENDS_PER_SECOND = 40.0  # Of each of four producers.
SETTLE_SECONDS = 10.0  # After the last heal producers go on for so long.
DRAIN_SECONDS_MAX = 200.0
GROUPS_SECONDS_MAX = 60.0
# Small segments, so that they are rolled, too.
SETTINGS = {"offsets.topic.num.partitions": "4", "log.segment.bytes": str(1 << 20)}


class Run:
    """`torment` is what happens to the nodes while their clients are at work."""

    def __init__(self, name: str, directory: Path, seed: int, console: Console) -> None:
        self.name = name
        self.seed = seed
        self.chance = random.Random(seed)
        self.data = directory / "nodes"
        self.directory = directory
        self._console = console
        self._recorder = Recorder()
        self._failures: list[str] = []
        self.data.mkdir(parents=True)

    def go(self, nodes: Nodes, torment: Callable[[Nemesis], None]) -> bool:
        """Whether all was well. What happened is told, drawn and kept in the directory."""
        nemesis = Nemesis(nodes, self.chance, self._recorder, self.say)
        try:
            self.say(f"{len(nodes.ids)} nodes, {nodes.wiring.name}, seed {self.seed}")
            self._act(nodes, nemesis, torment)
        except Exception:  # noqa: BLE001  Whatever ended it, what was seen so far is judged.
            self._failures.append(format_exc())
        finally:
            nodes.kill(*nodes.ids)
            nodes.wiring.close()
            self._recorder.close()
            self._recorder.write(self.directory / "history.jsonl")
        return self._tell(self._judge(nodes, nemesis), nemesis)

    def _act(self, nodes: Nodes, nemesis: Nemesis, torment: Callable[[Nemesis], None]) -> None:
        nodes.start()
        nodes.wait_ready()
        create_topic(nodes.bootstrap, TOPIC)
        setting = Setting(nodes.bootstrap, TOPIC, PARTITIONS, self._recorder, SENDS_PER_SECOND)
        workload = Workload(setting, self.seed)
        workload.start()
        torment(nemesis)
        self.say("healed")
        time.sleep(SETTLE_SECONDS)
        workload.stop_writing()
        self.say("reading everything with a fresh consumer")
        drain(setting, DRAIN_SECONDS_MAX)
        self._wait_groups()
        workload.stop_reading()
        self._failures += workload.broken
        nodes.require_alive(nodes.ids)
        for node_id in nodes.ids:
            nodes.stop(node_id)

    def _wait_groups(self) -> None:
        deadline = time.monotonic() + GROUPS_SECONDS_MAX
        while any(left_out(self._recorder.operations, group) for group in GROUPS):
            if time.monotonic() > deadline:
                return  # The verdict says what they left out.
            time.sleep(1)

    def _judge(self, nodes: Nodes, nemesis: Nemesis) -> Verdict:
        self.say(f"checking {len(self._recorder.operations):,} operations")
        verdict = judge(self._recorder.operations, nemesis.faults, GROUPS)
        directories = [nodes.log_directory(node_id) for node_id in nodes.ids]
        keys = [f"{TOPIC}-{partition}" for partition in range(PARTITIONS)]
        for key in differing_replicas(directories, keys):
            verdict.failures.append(f"the replicas of {key} do not hold the same bytes")
        for node_id in nodes.ids:
            log = nodes.log_file(node_id)
            if "Traceback" in log.read_text(errors="replace"):
                verdict.failures.append(f"node {node_id} met an exception that nobody expected")
        verdict.failures += self._failures
        return verdict

    def _tell(self, verdict: Verdict, nemesis: Nemesis) -> bool:
        self._console.print(operations_table(self._recorder.operations))
        self._console.print(faults_table(verdict))
        title = f"{self.name}, seed {self.seed}: {len(nemesis.faults)} faults"
        path = self.directory / "timeline.png"
        drawn = draw(path, self._recorder.operations, nemesis.faults, verdict.gaps, title)
        if drawn is not None:
            self._console.print(f"timeline: {drawn}")
        return self.tell(verdict.failures)

    def tell(self, failures: list[str]) -> bool:
        for failure in failures:
            self._console.print(f"[red]{escape(failure)}", highlight=False)
        if failures:
            self._console.print(
                f"[red]failed[/] (seed {self.seed}): history in {self.directory}, logs and data "
                f"directories of the nodes in {self.data}"
            )
        else:
            self._console.print(f"[green]no anomaly[/] (seed {self.seed})")
        return not failures

    def say(self, text: str) -> None:
        done = len(self._recorder.operations)
        seconds = self._recorder.now_ns() / SECOND
        self._console.print(f"{seconds:6.1f} s  {done:>7,} operations  {text}", highlight=False)


def create_topic(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(topic, num_partitions=PARTITIONS, replication_factor=NODES)
    deadline = time.monotonic() + 30
    while True:
        try:
            admin.create_topics([new], operation_timeout=10)[topic].result(15)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return  # An attempt before took effect after all.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
        else:
            return


def log_clients(directory: Path) -> None:
    """What aiokafka has to say goes to a file."""
    form = "%(asctime)s %(name)s %(message)s"
    logging.basicConfig(filename=directory / "clients.log", level=logging.INFO, format=form)
