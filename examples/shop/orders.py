"""What an order looks like, and how both applications make them up: some are bad."""

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
    """What an application has sent; it prints this when it ends."""

    application: str
    good: int = 0
    bad: int = 0
    cents: int = 0

    def tell(self) -> None:
        print(json.dumps(self.__dict__), flush=True)


def next_order(source: random.Random, sent: Sent) -> tuple[bytes, bytes]:
    """Key and value of the next order; it is counted as what it is."""
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
            b'{"order_id": "' + number.encode() + b'", "customer": ',  # Cut off.
            json.dumps({"order_id": number, "customer": customer}).encode(),  # No price.
            json.dumps({"order_id": number, "customer": customer, "cents": -cents}).encode(),
            b"\xff\xfe not even text",
        ]
    )
