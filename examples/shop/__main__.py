"""Runs the whole shop on this machine for a minute, then checks that the totals agree.

python -m examples.shop [--seconds 60] [--directory build/shop]
"""

import argparse
import shutil
import sys
import time
from pathlib import Path

from tests.postgres import PostgresServer

from examples.shop.back_office import set_up
from examples.shop.chart import draw
from examples.shop.orders import BILLED, CUSTOMERS, CUSTOMERS_TOPIC, DEAD_LETTERS, TOPIC
from examples.shop.program import Program, wait_until
from examples.shop.totals import Outcome, check
from examples.shop.watch import Watch
from ottla.testing import Broker

ORDERS_PER_SECOND, CHANGES_PER_SECOND = 300, 30  # Of each application, and of the back office.
GROUPS = ["billing", "analytics", "spark-bills"]


def main() -> int:
    parser = argparse.ArgumentParser(description="A shop around one log, for a minute.")
    parser.add_argument("--seconds", type=float, default=60, help="how long orders are sent")
    parser.add_argument("--directory", type=Path, default=Path("build/shop"), help="chart, tables")
    options = parser.parse_args()
    directory: Path = options.directory.absolute()
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    with Broker(process=True) as broker, PostgresServer() as database:
        outcome, watch = run(broker, database, directory, options.seconds)
        agreed = check(outcome, broker, database, directory / "lake")
    chart = directory / "shop.png"
    draw(watch, chart)
    print(f"\nchart: {_shown(chart)}\ntables: {_shown(directory / 'lake')}")
    return 0 if agreed else 1


def run(
    broker: Broker, database: PostgresServer, directory: Path, seconds: float
) -> tuple[Outcome, Watch]:
    """Start everything, let it run, and stop it in the direction of the data flow."""
    bootstrap, dsn = broker.bootstrap_servers, database.dsn()
    set_up(dsn)
    for topic, partitions in ((TOPIC, 3), (BILLED, 3), (DEAD_LETTERS, 1), ("analytics.dlq", 1)):
        broker.create_topic(topic, partitions)
    programs: list[Program] = []

    def start(*command: str) -> Program:
        programs.append(Program(*command, directory=directory))
        return programs[-1]

    watch = Watch(bootstrap, [TOPIC, BILLED, DEAD_LETTERS, CUSTOMERS_TOPIC], GROUPS)
    try:
        print(f"broker on {bootstrap}, PostgreSQL on port {database.port}; starting Spark ...")
        tail = start("ottla.cli.main", "cdc", "postgres", dsn, "--prefix", "shop", "-b", bootstrap)
        wait_until(
            lambda: (
                CUSTOMERS_TOPIC in broker.topics()
                and len(broker.records(CUSTOMERS_TOPIC)) >= CUSTOMERS
            ),
            "the tail has written the customers",
            programs,
        )
        spark = start("examples.shop.pipeline", bootstrap, str(directory))
        spark.read_line()
        billing = start("examples.shop.billing", bootstrap)
        analytics = start("examples.shop.analytics", bootstrap)
        watch.start()
        print(f"all run; orders come for {seconds:g} seconds ...")
        began = time.monotonic()
        web, till = (
            start(f"examples.shop.{name}", bootstrap, str(seconds), str(ORDERS_PER_SECOND))
            for name in ("web_app", "till_app")
        )
        office = start("examples.shop.back_office", dsn, str(seconds), str(CHANGES_PER_SECOND))
        sent = [program.last_line() for program in (web, till, office)]
        watch.orders_end()
        print(
            f"the last order came after {time.monotonic() - began:.0f} s; working off the rest ..."
        )
        wait_until(lambda: _is_confirmed(database), "the tail has caught up", programs)
        tail.stop()
        spark.tell_to_end()
        wait_until(
            lambda: all((watch.lags[group] or [None])[-1] == 0 for group in GROUPS[:2]),
            "the groups have read everything",
            programs,
        )
        took = time.monotonic() - began
        return Outcome(sent, billing.stop(), analytics.stop(), took), watch
    finally:
        for program in programs:
            program.kill()
        watch.stop()


def _shown(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _is_confirmed(database: PostgresServer) -> bool:
    return database.execute(
        "SELECT confirmed_flush_lsn >= pg_current_wal_lsn() FROM pg_replication_slots"
    ) == [(True,)]


if __name__ == "__main__":
    sys.exit(main())
