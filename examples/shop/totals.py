"""Compares the totals of all programs."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from rich import box
from rich.console import Console
from rich.table import Table
from tests.postgres import PostgresServer

from examples.shop.orders import BILLED, CUSTOMERS_TOPIC, DEAD_LETTERS, TOPIC
from ottla.testing import Broker


@dataclass
class Outcome:
    """Final output of the programs."""

    sent: list[Any]  # Of the two applications and the back office.
    billing: Any
    analytics: Any
    seconds: float


@dataclass
class Claim:
    what: str
    wanted: object
    found: object

    @property
    def is_true(self) -> bool:
        return self.wanted == self.found


def check(outcome: Outcome, broker: Broker, database: PostgresServer, lake: Path) -> bool:
    """Print every total beside the one that it must equal; returns whether all do."""
    web, till, office = outcome.sent
    good, bad = web["good"] + till["good"], web["bad"] + till["bad"]
    cents = web["cents"] + till["cents"]
    written = [json.loads(record.value or b"") for record in broker.records(BILLED)]
    bills = {
        bill["order_id"]: bill for bill in written
    }.values()  # At least once: duplicates are removed.
    minutes = DeltaTable(str(lake / "minutes")).to_pyarrow_table().to_pylist()
    customers = dict(database.execute("SELECT id, discount FROM customers"))
    changes = broker.records(CUSTOMERS_TOPIC)
    first, later = _discounts(changes)
    claims = [
        Claim("orders: records of the two applications", good + bad, len(broker.records(TOPIC))),
        Claim("orders.billed: a bill for each good order", good, len(bills)),
        Claim("orders.billed: cents before discount", cents, sum(bill["cents"] for bill in bills)),
        Claim(
            "orders.dlq: a dead letter for each bad order", bad, len(broker.records(DEAD_LETTERS))
        ),
        Claim(
            "orders.billed: discounts that the customer never had",
            0,
            sum(_discount(bill) not in first | later for bill in bills),
        ),
        Claim(
            "orders.billed: discounts changed meanwhile are noticed",
            "yes",
            "yes" if any(_discount(bill) in later - first for bill in bills) else "no",
        ),
        Claim("group billing: bills sent", good, outcome.billing["bills"]),
        Claim(
            "group billing: cents to be paid",
            sum(bill["net"] for bill in bills),
            outcome.billing["net"],
        ),
        Claim("group analytics: orders counted", good, outcome.analytics["orders"]),
        Claim("group analytics: orders rejected", bad, outcome.analytics["rejected"]),
        Claim("Delta table of minutes: orders", good, sum(row["orders"] for row in minutes)),
        Claim("Delta table of minutes: cents", cents, sum(row["cents"] for row in minutes)),
        Claim("topic of customers says what PostgreSQL says", customers, _folded(changes)),
        Claim("Delta table of customers says so too", customers, _table(lake / "customers")),
    ]
    _show(outcome, claims, (good, bad, office["changes"], len(changes)))
    if repeated := len(written) - len(bills):
        print(f"{repeated:,} bills were written twice, since a query failed and began again")
    return all(claim.is_true for claim in claims)


def _discounts(records: Iterable[Any]) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """All discounts of each customer: in the snapshot, and since."""
    first, later = set(), set()
    for record in records:
        customer = json.loads(record.key)["id"]
        discount = 0 if record.value is None else json.loads(record.value)["discount"]
        is_first = dict(record.headers)["op"] == b"r"
        (first if is_first else later).add((customer, discount))
    return first, later


def _discount(bill: dict[str, int]) -> tuple[int, int]:
    return bill["customer"], bill["discount"]


def _folded(records: Iterable[Any]) -> dict[int, int]:
    rows = {}
    for record in records:
        customer = json.loads(record.key)["id"]
        rows.pop(customer, None)
        if record.value is not None:
            rows[customer] = json.loads(record.value)["discount"]
    return rows


def _table(path: Path) -> dict[int, int]:
    rows = DeltaTable(str(path)).to_pyarrow_table().to_pylist()
    return {row["id"]: row["discount"] for row in rows}


def _show(outcome: Outcome, claims: list[Claim], counts: tuple[int, int, int, int]) -> None:
    good, bad, changes, records = counts
    print(
        f"\nin {outcome.seconds:.0f} s: {good:,} good and {bad:,} bad orders, "
        f"{changes:,} statements in PostgreSQL, {records:,} records of customers\n"
    )
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("", "went in", "came out", ""):
        table.add_column(column, justify="right" if column else "left")
    for claim in claims:
        verdict = "agrees" if claim.is_true else "DIFFERS"
        table.add_row(claim.what, _text(claim.wanted), _text(claim.found), verdict)
    Console(width=110).print(table)
    wrong = sum(not claim.is_true for claim in claims)
    print("all sums agree" if not wrong else f"{wrong} sums DIFFER")


def _text(value: object) -> str:
    if isinstance(value, dict):
        return f"{len(value)} rows"
    return f"{value:,}" if isinstance(value, int) else str(value)
