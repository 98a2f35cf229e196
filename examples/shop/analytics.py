"""The group `analytics`: reads the same orders as Spark, and rejects invalid ones."""

import json
import sys
from collections import Counter

from examples.shop.orders import TOPIC
from ottla.consumer import Record, Reject, consume


class Analytics:
    def __init__(self) -> None:
        self.orders: Counter[str] = Counter()
        self.rejected = 0

    def handle(self, record: Record) -> None:
        try:
            order = json.loads(record.value or b"")
            if order["cents"] <= 0:
                raise ValueError("the price is negative")
        except (ValueError, KeyError) as failure:
            self.rejected += 1
            raise Reject(f"not an order: {failure!r}") from failure
        self.orders[order["order_id"].partition("-")[0]] += 1


def main(bootstrap: str) -> None:
    analytics = Analytics()
    consume(
        [TOPIC],
        analytics.handle,
        group="analytics",
        bootstrap_servers=bootstrap,
        dead_letters="analytics.dlq",
    )
    told = {"orders": analytics.orders.total(), "rejected": analytics.rejected}
    print(json.dumps({"group": "analytics", **told, "by": analytics.orders}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
