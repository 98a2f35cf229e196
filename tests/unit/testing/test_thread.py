import socket
import threading
from pathlib import Path

from ottla.testing.faults import FaultOrder
from ottla.testing.thread import BrokerThread


def test_the_thread_stays_over_a_restart_and_ends_at_the_close(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    runner = BrokerThread(str(tmp_path), {}, 0)
    address = runner.start()
    (thread,) = (t for t in threading.enumerate() if t.name == "ottla-broker" and t not in before)
    assert thread.daemon, "a test run that is interrupted must not hang on it"
    socket.create_connection(address, timeout=5).close()
    runner.inject(FaultOrder("drop", "Metadata"))
    runner.clear_faults()
    assert runner.drop_connections() in (0, 1)
    runner.kill()
    assert runner.start() == address
    assert thread.is_alive()
    runner.stop(cleanly=True)
    runner.close()
    assert not thread.is_alive()
    runner.close()  # A second close has no effect.
