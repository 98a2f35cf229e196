"""A Spark cluster on this machine: a master and two workers, of the Spark that pip installed.

The workers have addresses of their own, as machines have: Spark starts a second attempt at a slow
task only on another host.
"""

import os
import subprocess
import sys
from pathlib import Path

import pyspark

from tests.conformance.broker_process import free_ports

HOSTS = ("127.0.0.1", "127.0.0.2") if sys.platform == "linux" else ("127.0.0.1", "127.0.0.1")


class Standalone:
    def __init__(self, directory: Path, cores: int = 1) -> None:
        """Each worker has so many `cores`."""
        self._port, *self._others = free_ports(4)
        self._cores = cores
        self._home = Path(pyspark.__file__).parent
        self._directory = directory
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self._port}"

    def __enter__(self) -> "Standalone":
        ui, *uis = map(str, self._others)
        port = ["--port", str(self._port), "--webui-port", ui]
        self._start("master", "master.Master", HOSTS[0], *port)
        for number, (host, worker_ui) in enumerate(zip(HOSTS, uis, strict=True)):
            room = ["--cores", str(self._cores), "--memory", "1g", "--webui-port", worker_ui]
            work = ["--work-dir", str(self._directory / f"work-{number}")]
            self._start(f"worker-{number}", "worker.Worker", host, *room, *work, self.master)
        return self

    def _start(self, name: str, kind: str, host: str, *arguments: str) -> None:
        command = [self._home / "bin/spark-class", f"org.apache.spark.deploy.{kind}"]
        place = {"SPARK_HOME": str(self._home), "SPARK_LOCAL_IP": host}
        with (self._directory / f"{name}.txt").open("wb") as output:
            process = subprocess.Popen(
                [*command, "--host", host, *arguments],
                stdout=output,
                stderr=output,
                env={**os.environ, **place},
            )
        self._processes.append(process)

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            process.wait(60)
