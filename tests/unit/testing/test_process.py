"""A broker in a process beside the test."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ottla.testing import Broker
from ottla.testing.process import BrokerFailed, BrokerProcess


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_it_serves_fails_on_request_and_survives_kill_9() -> None:
    with Broker(process=True) as broker:
        broker.create_topic("topic")
        broker.lose_answers("Produce")
        broker.produce("topic", "before")
        broker.delay("Produce", 0.2)
        broker.clear_faults()
        pid, data = broker.pid, Path(broker.data)
        assert pid is not None
        assert pid != os.getpid()
        broker.kill()
        assert not is_alive(pid)
        broker.start()
        broker.drop_connections()
        broker.produce("topic", "after")
        assert [record.value for record in broker.records("topic")] == [b"before", b"after"]
        broker.restart()
        assert len(broker.records("topic")) == 2
        pid = broker.pid
        assert pid is not None
    assert not is_alive(pid)
    assert not data.exists()


def test_a_failed_start_reports_its_reason(tmp_path: Path) -> None:
    runner = BrokerProcess(str(tmp_path), {"num.partitions": "many"}, 0)
    with pytest.raises(BrokerFailed, match=r"num\.partitions"):
        runner.start()
    assert runner.pid is None


def test_it_does_not_outlive_the_process_that_started_it(tmp_path: Path) -> None:
    program = (
        "from ottla.testing import Broker\n"
        f"broker = Broker(process=True, data={str(tmp_path)!r}).start()\n"
        "print(broker.pid, flush=True)\n"
        "import time; time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 10
    while is_alive(pid):
        assert time.monotonic() < deadline
        time.sleep(0.02)
