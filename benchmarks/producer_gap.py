"""How long an idempotent producer at full speed goes without an acknowledgement."""

import json
import subprocess
import threading
import time
from itertools import pairwise
from types import TracebackType

from confluent_kafka import Consumer

from benchmarks.programs import LoadFailedError, program

GOING_TICKS = 10  # Of a tenth of a second each: in so many in a row there was progress.
SECONDS_MAX = 90


class Writer:
    """A producer in a process of its own, from `with` to `longest_gap`."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._process = subprocess.Popen(
            [str(program("rdkafka")), "gap", "-b", bootstrap, "-T", topic],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read)

    def __enter__(self) -> "Writer":
        self._reader.start()
        self.until_it_goes_on()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def watch(self) -> None:
        """Gaps count from now on."""
        assert self._process.stdin is not None, "it is a pipe"
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def until_it_goes_on(self) -> None:
        """Until it has been acknowledged something in every tick for a while, from now on."""
        known = len(self._lines)
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            counts = [int(line) for line in self._lines[known:]][-GOING_TICKS - 1 :]
            if len(counts) > GOING_TICKS and all(a < b for a, b in pairwise(counts)):
                return
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise LoadFailedError("the producer does not go on")
            time.sleep(0.05)

    def longest_gap(self) -> float:
        assert self._process.stdin is not None, "it is a pipe"
        self._process.stdin.close()
        self._process.wait(SECONDS_MAX)
        self._reader.join()
        return float(json.loads(self._lines[-1])["gap_s"])

    def _read(self) -> None:
        assert self._process.stdout is not None, "it is a pipe"
        for line in self._process.stdout:
            self._lines.append(line)


class Member:
    """The one consumer of a group, which commits what it has read a few times a second."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "latest",
                "auto.commit.interval.ms": 200,
                "log_level": 0,
            }
        )
        self._consumer.subscribe([topic])
        self._arrivals: list[float] = []
        self._is_running = True
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Member":
        self._thread.start()
        deadline = time.monotonic() + SECONDS_MAX
        while not self._arrivals:
            assert time.monotonic() < deadline, "the member got no records"
            time.sleep(0.05)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_running = False
        self._thread.join()
        self._consumer.close()

    def longest_gap(self, since: float) -> float:
        times = [since, *(at for at in list(self._arrivals) if at >= since), time.monotonic()]
        return max(after - before for before, after in pairwise(times))

    def _run(self) -> None:
        while self._is_running:
            messages = self._consumer.consume(10_000, 0.02)
            if any(message.error() is None for message in messages):
                self._arrivals.append(time.monotonic())
