import time
from collections.abc import Callable

from ottla.cli.tasks.broker_watch import BrokerWatch
from ottla.testing import Broker


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_broker_is_away_from_its_last_answer_until_its_next() -> None:
    with Broker(process=True) as broker:
        watch = BrokerWatch(broker.bootstrap_servers)
        with watch.watching():
            assert watch.away_s is None
            broker.kill()
            wait_for(lambda: watch.away_s is not None)
            wait_for(lambda: (watch.away_s or 0) > 1)
            broker.start()
            wait_for(lambda: watch.away_s is None)
