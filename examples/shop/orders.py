"""The format of an order, and the generator for both applications, which makes some bad ones."""

import json
import random
from dataclasses import dataclass

TOPIC = "orders"
BILLED = "orders.billed"
DEAD_LETTERS = "orders.dlq"
CUSTOMERS_TOPIC = "shop.public.customers"
BAD_SHARE = 0.02
CUSTOMERS = 100


@dataclass
class Sent:
    """Totals of an application, printed at its end."""

    application: str
    good: int = 0
    bad: int = 0
    cents: int = 0

    def tell(self) -> None:
        print(json.dumps(self.__dict__), flush=True)


def next_order(source: random.Random, sent: Sent) -> tuple[bytes, bytes]:
    """Key and value of the next order, which is counted by kind."""
    number = f"{sent.application}-{sent.good + sent.bad}"
    customer, cents = source.randint(1, CUSTOMERS), source.randint(100, 50_000)
    key = str(customer).encode()
    if source.random() >= BAD_SHARE:
        sent.good += 1
        sent.cents += cents
        order = {"order_id": number, "customer": customer, "cents": cents}
        return key, json.dumps(order).encode()
    sent.bad += 1
    return key, source.choice(
        [
            b'{"order_id": "' + number.encode() + b'", "customer": ',  # Truncated.
            json.dumps({"order_id": number, "customer": customer}).encode(),  # No price.
            json.dumps({"order_id": number, "customer": customer, "cents": -cents}).encode(),
            b"\xff\xfe not even text",
        ]
    )
