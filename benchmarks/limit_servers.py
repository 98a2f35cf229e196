"""The limits as processes: what each is called in tables, and how it is started."""

import sys
from pathlib import Path

from benchmarks.processes import ServerProcess, accepts
from benchmarks.programs import run_program

FILE_BATCHES, FILE_BATCH_RECORDS, FILE_VALUE_BYTES = 16384, 16, 1000

LIMITS = {
    "framing": "framing, epoll",
    "loop_framing": "framing, our loop",
    "receiving": "receive, CRC, write",
    "sending": "sendfile",
}


class Limit:
    """One limit server, a process of its own."""

    def __init__(self, name: str, port: int, directory: Path) -> None:
        self.name = name
        self.port = port
        self._directory = directory
        command = [sys.executable, "-m", f"benchmarks.limits.{name}", str(port)]
        command += map(str, self._arguments())
        self._process = ServerProcess(command, port, directory / f"{name}.log")

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self) -> None:
        self._process.start(accepts)

    def stop(self) -> None:
        self._process.stop()
        self._data.unlink(missing_ok=True)

    @property
    def _data(self) -> Path:
        return self._directory / f"{self.name}.data"

    def _arguments(self) -> list[object]:
        if self.name == "receiving":
            return [self._data]
        if self.name == "sending":
            options = {"-m": "file", "-T": self._data, "-n": FILE_BATCHES}
            options |= {"-r": FILE_BATCH_RECORDS, "-s": FILE_VALUE_BYTES}
            made = run_program("raw", [text for pair in options.items() for text in pair], 60)
            return [self._data, int(made["batch_bytes"]), FILE_BATCH_RECORDS]
        return []
