"""kafka-python's own integration tests, from its PyPI sdist, against a broker that already runs.

The sdist is fetched once into a cache directory (OTTLA_CACHE, by default `~/.cache/ottla`), never
into the repository. `kafka_python_allowed.txt` names the tests that a broker has to pass.
"""

import importlib.metadata
import os
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from tests.conformance.apache_kafka import missing

HERE = Path(__file__).parent
ALLOWED = HERE / "kafka_python_allowed.txt"
FILES = ("admin", "consumer", "producer")
# These tests give a group some seconds to become stable, and sessions of three. A new group that
# waits its usual three seconds for more members, and does so again for each that comes, is too slow
# for them on a machine that is busy.
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1000"}

# The sdist leaves out the module that starts services; for a broker that runs already, this is all
# of it that is used.
SERVICE = '''"""Stands in for kafka-python's own module, which its sdist lacks."""


class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    def dump_logs(self):
        pass

    def stop(self):
        pass


class SpawnedService:
    pass
'''


def allowed() -> list[str]:
    lines = (line.split("#")[0].strip() for line in ALLOWED.read_text().splitlines())
    return [line for line in lines if line]


def source() -> Path:
    """The unpacked sdist of the kafka-python that is installed."""
    version = importlib.metadata.version("kafka-python")
    cache = Path(os.environ.get("OTTLA_CACHE", Path.home() / ".cache/ottla"))
    unpacked = cache / f"kafka_python-{version}"
    if not (unpacked / "test/service.py").exists():
        cache.mkdir(parents=True, exist_ok=True)
        fetched = subprocess.run(
            [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
                *("--no-binary", "kafka-python", "--dest", str(cache)),
                f"kafka-python=={version}",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if fetched.returncode:
            missing(f"kafka-python's sdist could not be fetched: {fetched.stderr[-300:]}")
        with tarfile.open(next(cache.glob(f"kafka?python-{version}.tar.gz"))) as archive:
            archive.extractall(cache, filter="data")
        # Without this file, `import test` would find the standard library's.
        (unpacked / "test/__init__.py").touch()
        (unpacked / "test/service.py").write_text(SERVICE)
    return unpacked


def run(bootstrap: str, report: Path, tests: list[str] | None = None) -> dict[str, str | None]:
    """Each test's name and its failure (None if it passed, "skipped" if it was)."""
    root = source()
    selected = tests or [f"test_{name}_integration.py" for name in FILES]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider"),
            *("-o", "addopts=", "-o", "filterwarnings=ignore", "--timeout=30", "--tb=short"),
            *("-c", os.devnull, "--rootdir", str(root), f"--junitxml={report}"),
            *(f"test/integration/{test}" for test in selected),
        ],
        cwd=root,
        env=os.environ
        | {
            "KAFKA_VERSION": "4.2.0",
            "KAFKA_URI": f"kafka://{bootstrap}",
            "KAFKA_ROOT": str(root),
            "PYTHONPATH": str(root),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.exists(), f"pytest did not run:\n{done.stdout}{done.stderr}"
    return dict(_outcome(case) for case in ElementTree.parse(report).iter("testcase"))


def _outcome(case: ElementTree.Element) -> tuple[str, str | None]:
    name = f"{case.get('classname', '').split('.')[-1]}.py::{case.get('name')}"
    for kind in ("failure", "error"):
        if (found := case.find(kind)) is not None:
            return name, found.text or kind
    return name, "skipped" if case.find("skipped") is not None else None


if __name__ == "__main__":
    # How the list grows: `python -m tests.conformance.kafka_python_suite HOST:PORT` runs everything
    # against a broker that was started with the settings above, and prints what passed.
    for name, failure in run(sys.argv[1], Path("kafka-python.xml").resolve()).items():
        verdict = "passed" if failure is None else failure.strip().splitlines()[-1][:120]
        print(f"{name:90} {verdict}")  # noqa: T201
