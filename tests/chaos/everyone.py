"""All nodes lose power at once, by default settings: something may be lost, and then it is told.

Every round writes to a topic of its own, cuts all power at a random instant, and reads what is
left, writes again, and reads again. What was acknowledged before the cut need not be there; what
is there keeps its offset, has no holes, and stays.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from traceback import format_exc

from ottla.model.types import Offset
from ottla.simulation.history.history_checker import check
from ottla.simulation.history.operations import Key, Kind, Operation, Outcome, Poll, Send, Value
from tests.chaos import confluent_clients
from tests.chaos.clients import Lives, Setting
from tests.chaos.faults import Fault, wait_until
from tests.chaos.images import Images
from tests.chaos.nodes import Nodes
from tests.chaos.picture import draw
from tests.chaos.power import cut_power
from tests.chaos.recorder import Recorder
from tests.chaos.run import PARTITIONS, Run, create_topic
from tests.chaos.verdict import differing_replicas

WRITERS = 3
SENDS_PER_SECOND = 150.0
BEFORE_SECONDS = (1.0, 6.0)
WRITTEN_BACK_SHARE = 0.7
AFTER_SECONDS = 1.0
DRAIN_SECONDS_MAX = 60.0
TOLD = "may be lost"  # What a node says that leads without having been in sync.


def lose_everyone(run: Run, nodes: Nodes, images: Images, rounds: int) -> bool:
    failures: list[str] = []
    lost_in_all = acknowledged_in_all = 0
    try:
        nodes.start()
        nodes.wait_ready()
        for number in range(1, rounds + 1):
            one = _Round(run, nodes, images, number)
            one.go()
            failures += one.failures
            lost_in_all += one.lost
            acknowledged_in_all += one.acknowledged
        for node_id in nodes.ids:
            nodes.stop(node_id)
        directories = [nodes.log_directory(node_id) for node_id in nodes.ids]
        keys = [key for number in range(1, rounds + 1) for key in _keys(_topic(number))]
        failures += [
            f"the replicas of {key} differ" for key in differing_replicas(directories, keys)
        ]
    except Exception:  # noqa: BLE001  Whatever ended it, what is there is kept and told.
        failures.append(format_exc())
    finally:
        nodes.kill(*nodes.ids)
    run.say(f"{lost_in_all} of {acknowledged_in_all} acknowledged records were lost, and told of")
    return run.tell(failures)


class _Round:
    def __init__(self, run: Run, nodes: Nodes, images: Images, number: int) -> None:
        self.failures: list[str] = []
        self.lost = self.acknowledged = 0
        self._run = run
        self._nodes = nodes
        self._images = images
        self._topic = _topic(number)
        self._recorder = Recorder()
        self._log_sizes = {node_id: self._log_size(node_id) for node_id in nodes.ids}

    def go(self) -> None:
        create_topic(self._nodes.bootstrap, self._topic)
        seconds = self._run.chance.uniform(*BEFORE_SECONDS)
        stop = self._write("before", 0)
        self._let_pass(seconds)
        fault = Fault("power loss", self._nodes.ids, "all nodes", self._recorder.now_ns())
        cut_power(self._nodes, self._images, self._nodes.ids)
        stop()
        self._recorder.close()
        before = list(self._recorder.operations)
        self._nodes.start()
        fault.healed_ns = self._recorder.now_ns()
        self._nodes.wait_ready()
        confluent_clients.drain(self._setting(), DRAIN_SECONDS_MAX, Kind.POLL)
        stop = self._write("after", DRAIN_SECONDS_MAX)
        time.sleep(AFTER_SECONDS)
        stop()
        confluent_clients.drain(self._setting(), DRAIN_SECONDS_MAX)
        self._recorder.close()
        self._recorder.write(self._run.directory / f"{self._topic}.jsonl")
        self._judge(before)
        path = self._run.directory / f"{self._topic}.png"
        draw(path, self._recorder.operations, [fault], [], f"power lost by all, {self._topic}")

    def _let_pass(self, seconds: float) -> None:
        """The kernel writes one disk or the other back meanwhile: each keeps another part."""
        chance, began = self._run.chance, time.monotonic()
        moments = [(chance.uniform(0, seconds), node_id) for node_id in self._nodes.ids]
        for moment, node_id in sorted(moments):
            if chance.random() < WRITTEN_BACK_SHARE:
                wait_until(began + moment)
                self._images.write_back(node_id)
        wait_until(began + seconds)

    def _setting(self, flush_seconds: float = 0) -> Setting:
        return Setting(
            self._nodes.bootstrap,
            self._topic,
            PARTITIONS,
            self._recorder,
            SENDS_PER_SECOND,
            flush_seconds,
        )

    def _write(self, when: str, flush_seconds: float) -> Callable[[], None]:
        """Start producers; the result stops them."""
        setting = self._setting(flush_seconds)
        names = [f"{self._topic}-{when}-{number}" for number in range(WRITERS)]
        threads = [
            threading.Thread(
                target=confluent_clients.write, args=(setting, Lives(name, self._run.seed))
            )
            for name in names
        ]
        for thread in threads:
            thread.start()

        def stop() -> None:
            setting.writing.set()
            for thread in threads:
                thread.join()

        return stop

    def _judge(self, before: list[Operation]) -> None:
        old = {operation.index for operation in before}
        after = [each for each in self._recorder.operations if each.index not in old]
        report = check([*map(_forgotten, before), *after])
        if not report.is_good:
            self.failures.append(f"{self._topic}: {report}")
        final = next(operation for operation in after if operation.kind is Kind.DRAIN)
        assert isinstance(final.steps[0], Poll), "a drain is a poll"
        said = "".join(self._said(node_id) for node_id in self._nodes.ids)
        shown = []
        for key, records in final.steps[0].found.items():
            acknowledged = _acknowledged(before, key)
            self.acknowledged += len(acknowledged)
            left = {value: offset for offset, value in records}
            lost = {value: at for value, at in acknowledged.items() if left.get(value) != at}
            self.lost += len(lost)
            moved = [value for value in lost if value in left]
            last_left = max(
                (at for value, at in acknowledged.items() if value not in lost), default=-1
            )
            holes = [value for value, at in lost.items() if at < last_left]
            if moved or holes:
                self.failures.append(f"{key}: moved {moved[:5]}, lost before others {holes[:5]}")
            if lost and not any(key in line and TOLD in line for line in said.splitlines()):
                self.failures.append(f"{key}: {len(lost)} records were lost, and nobody said so")
            shown.append(f"{len(lost)} of {len(acknowledged)}")
        self._run.say(f"{self._topic}: power lost by all; lost {', '.join(shown)}")

    def _log_size(self, node_id: int) -> int:
        log = self._nodes.log_file(node_id)
        return log.stat().st_size if log.exists() else 0

    def _said(self, node_id: int) -> str:
        """What a node has logged since the round began."""
        with self._nodes.log_file(node_id).open(errors="replace") as log:
            log.seek(self._log_sizes[node_id])
            return log.read()


def _topic(number: int) -> str:
    return f"round{number}"


def _keys(topic: str) -> list[Key]:
    return [f"{topic}-{partition}" for partition in range(PARTITIONS)]


def _forgotten(operation: Operation) -> Operation:
    """As if nobody had heard of its outcome: the power cut may have undone it."""
    steps = [Send(step.key, step.value) for step in operation.steps if isinstance(step, Send)]
    return replace(operation, outcome=Outcome.INFO, steps=steps)


def _acknowledged(operations: list[Operation], key: Key) -> dict[Value, Offset]:
    return {
        step.value: step.offset
        for operation in operations
        if operation.outcome is Outcome.OK
        for step in operation.steps
        if isinstance(step, Send) and step.key == key and step.offset is not None
    }
