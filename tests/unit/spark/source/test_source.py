import pickle
import subprocess
import sys

from ottla.env.network import Address
from ottla.model.types import ZERO_UUID, Uuid
from ottla.spark.source.source import Source

LOADED = """
import sys
import ottla.spark.source.stream_reader
assert "ottla.spark.source.source" in sys.modules
print(*sorted(name for name in sys.modules if name.startswith("ottla.")))
"""


def test_a_source_travels_and_is_named_after_its_partition() -> None:
    source = Source("orders", ZERO_UUID, 3, Address("localhost", 9092))
    known = source.with_id(Uuid(b"0123456789abcdef"))
    assert pickle.loads(pickle.dumps(known)) == known != source
    assert str(known) == str(source) == "orders-3"


def test_the_driver_of_a_stream_does_not_load_what_only_tasks_need() -> None:
    """Spark starts a process for it with every stream, and the stream waits for what it loads."""
    command = [sys.executable, "-c", LOADED]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "ottla.spark.source.discovery" in loaded
    for name in ("spark.fetching", "spark.columnar", "spark.sampling", "spark.link", "records"):
        assert f"ottla.{name}" not in loaded
