import subprocess
import sys

import pytest

from ottla.client.blocking_cluster import BlockingCluster
from ottla.client.errors import CannotConnect


def test_what_is_async_is_waited_for() -> None:
    async def work() -> int:
        return 3

    with BlockingCluster("127.0.0.1:1") as opened:
        assert opened.run(work()) == 3


def test_a_cluster_that_is_not_there_is_told() -> None:
    with BlockingCluster("127.0.0.1:1") as opened, pytest.raises(CannotConnect):
        opened.run(opened.cluster.refresh(None))


def test_it_loads_no_more_than_a_cluster_needs() -> None:
    """Spark starts a process for each stream, which waits for what is imported."""
    code = (
        "import sys, ottla.client.blocking_cluster;"
        "more = {f'ottla.client.{name}' for name in ('admin', 'groups', 'producer', 'reader')};"
        "sys.exit(f'loaded: {more & set(sys.modules)}' if more & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
