"""Child programs: each a Python process, whose last output line is its result."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

END_SECONDS_MAX = 300.0


class Program:
    def __init__(self, module: str, *arguments: str, directory: Path) -> None:
        self.module = module
        self.log = directory / f"{module}.log"
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def read_line(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self.fail()
        return json.loads(line)

    def last_line(self) -> Any:
        """Wait for its end."""
        output, _ = self._process.communicate(timeout=END_SECONDS_MAX)
        if self._process.returncode != 0:
            self.fail()
        lines = output.splitlines()
        return json.loads(lines[-1]) if lines[-1].startswith("{") else None

    def stop(self) -> Any:
        """Stop it with SIGTERM."""
        self._process.send_signal(signal.SIGTERM)
        return self.last_line()

    def tell_to_end(self) -> None:
        """Ask it, by a line on its standard input, to process the remaining records and end."""
        self._process.communicate("end\n", timeout=END_SECONDS_MAX)
        if self._process.returncode != 0:
            self.fail()

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def check(self) -> None:
        if self._process.poll() not in (None, 0):
            self.fail()

    def fail(self) -> None:
        self.kill()
        sys.exit(f"{self.module} has failed:\n{self.log.read_text()[-3000:]}")


def wait_until(is_so: Callable[[], bool], what: str, programs: Sequence[Program]) -> None:
    deadline = time.monotonic() + END_SECONDS_MAX
    while not is_so():
        for program in programs:
            program.check()
        if time.monotonic() > deadline:
            sys.exit(f"waited {END_SECONDS_MAX:.0f} s in vain until {what}")
        time.sleep(0.3)
