"""The group `billing`: would send the bills prepared by Spark; here it adds them up.

A record may be delivered twice (at least once), so bills are deduplicated by order number.
"""

import json
import sys

from examples.shop.orders import BILLED
from ottla.consumer import Record, Reject, consume


class Billing:
    def __init__(self) -> None:
        self.billed: set[str] = set()
        self.gross = self.net = self.repeated = 0

    def handle(self, record: Record) -> None:
        bill = json.loads(record.value or b"")
        if bill["net"] != bill["cents"] * (100 - bill["discount"]) // 100:
            raise Reject("the discount is not right")
        if bill["order_id"] in self.billed:
            self.repeated += 1
            return
        self.billed.add(bill["order_id"])
        self.gross += bill["cents"]
        self.net += bill["net"]


def main(bootstrap: str) -> None:
    billing = Billing()
    consume([BILLED], billing.handle, group="billing", bootstrap_servers=bootstrap)
    told = {"bills": len(billing.billed), "gross": billing.gross, "net": billing.net}
    print(json.dumps({"group": "billing", **told, "repeated": billing.repeated}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
