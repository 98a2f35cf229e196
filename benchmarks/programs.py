"""The load generators: C programs of ours, compiled when they are first needed.

`raw` needs a C compiler only. `rdkafka` is linked with the librdkafka inside the confluent-kafka
wheel, or with the system's if there is no wheel, so nothing but the test requirements is needed.
"""

import functools
import importlib.util
import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = HERE / "load"
BUILD = HERE.parent / "build" / "benchmarks"


class LoadFailedError(Exception):
    """A load generator ended with an error; the message is what it said."""


@functools.cache
def program(name: str) -> Path:
    """The path of the compiled program, which is newer than its sources."""
    built = BUILD / name
    newest = max(path.stat().st_mtime for path in SOURCES.iterdir())
    if not built.exists() or built.stat().st_mtime < newest:
        BUILD.mkdir(parents=True, exist_ok=True)
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if compiler is None:
            raise SystemExit("The benchmarks need a C compiler: install gcc or clang.")
        libraries = _librdkafka() if name == "rdkafka" else []
        command = [compiler, "-O2", "-o", str(built), str(SOURCES / f"{name}.c"), *libraries]
        subprocess.run([*command, "-lpthread"], check=True)
    return built


def _librdkafka() -> list[str]:
    found = importlib.util.find_spec("confluent_kafka")
    if found is not None and found.origin is not None:
        bundled = Path(found.origin).parent.parent / "confluent_kafka.libs"
        for library in sorted(bundled.glob("librdkafka*.so*")):
            return [str(library), f"-Wl,-rpath,{bundled}"]
    return ["-lrdkafka"]


def run_program(name: str, arguments: Sequence[object], seconds_max: float) -> dict[str, float]:
    """Run a load generator to its end; what it reports on its last line."""
    command = [str(program(name)), *map(str, arguments)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds_max)
    except subprocess.TimeoutExpired:
        raise LoadFailedError(f"{name} did not end within {seconds_max} s") from None
    if done.returncode:
        raise LoadFailedError(f"{' '.join(command)}: {done.stderr.strip()[-400:]}")
    report: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return report
