"""A server process and what it costs: its CPU time and memory as /proc tells them."""

import os
import re
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

START_SECONDS_MAX = 90
STOP_SECONDS_MAX = 30


class ServerProcess:
    """One process that listens on `port`; `log_file` holds what it prints."""

    def __init__(
        self,
        command: Sequence[str],
        port: int,
        log_file: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.port = port
        self.log_file = log_file
        self._command = list(command)
        self._environment = dict(os.environ if environment is None else environment)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "the process was never started"
        return self._process.pid

    def start(self, is_ready: Callable[[int], bool], poll_seconds: float = 0.02) -> float:
        """Start it; the seconds until `is_ready(port)`."""
        assert self._process is None, "one process listens on a port"
        with self.log_file.open("ab") as log:
            started_at = time.perf_counter()
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,
            )
        while not is_ready(self.port):
            seconds = time.perf_counter() - started_at
            if self._process.poll() is not None or seconds > START_SECONDS_MAX:
                said = self.log_file.read_text(errors="replace")[-2000:]
                self.stop()
                raise SystemExit(f"{' '.join(self._command[:4])} ... did not start:\n{said}")
            time.sleep(poll_seconds)
        return time.perf_counter() - started_at

    def stop(self, by: signal.Signals = signal.SIGTERM) -> None:
        if self._process is None:
            return
        process, self._process = self._process, None
        if process.poll() is None:
            process.send_signal(by)
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self) -> int:
        return self._status("VmRSS")

    def resident_bytes_peak(self) -> int:
        return self._status("VmHWM")

    def forget_peak(self) -> None:
        """From now on `resident_bytes_peak` is the peak since this call."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def threads(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/task").iterdir()))

    def _status(self, field: str) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(rf"^{field}:\s+(\d+) kB", status, re.MULTILINE)
        assert found is not None, f"the kernel tells {field} of every process"
        return int(found[1]) * 1024


def accepts(port: int) -> bool:
    """Whether something listens at `port`."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def answers_metadata(port: int) -> bool:
    """Whether a broker at `port` knows of a broker: before that, clients get nowhere."""
    return brokers_seen(port) > 0


def brokers_seen(port: int) -> int:
    """How many brokers the one at `port` knows of; 0 if it does not answer."""
    request = struct.pack(">hhihi", 3, 1, 1, -1, 0)
    try:
        with socket.create_connection(("127.0.0.1", port), 1) as connection:
            connection.settimeout(5)
            connection.sendall(struct.pack(">i", len(request)) + request)
            answer = connection.recv(12, socket.MSG_WAITALL)
            return int(struct.unpack_from(">i", answer, 8)[0]) if len(answer) == 12 else 0
    except OSError:
        return 0
