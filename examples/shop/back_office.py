"""The back office: changes customers in PostgreSQL, without using topics."""

import json
import random
import sys
import time

import psycopg2

from examples.shop.orders import CUSTOMERS

SETUP = """
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, discount int NOT NULL);
INSERT INTO customers SELECT i, 'customer ' || i, i %% 5 FROM generate_series(1, %s) i;
"""


def main(dsn: str, seconds: float, per_second: float) -> None:
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    source, changes = random.Random(3), 0
    began = time.monotonic()
    with connection.cursor() as cursor:
        while (now := time.monotonic() - began) < seconds:
            while changes < now * per_second:
                customer = source.randint(1, CUSTOMERS)
                if source.random() < 0.1:
                    cursor.execute("DELETE FROM customers WHERE id = %s", (customer,))
                else:
                    cursor.execute(
                        "INSERT INTO customers VALUES (%s, %s, %s) ON CONFLICT (id)"
                        " DO UPDATE SET discount = excluded.discount",
                        (customer, f"customer {customer}", source.randint(0, 20)),
                    )
                changes += 1
            time.sleep(0.02)
    print(json.dumps({"application": "back office", "changes": changes}), flush=True)


def set_up(dsn: str) -> None:
    with psycopg2.connect(dsn) as connection, connection.cursor() as cursor:
        cursor.execute(SETUP, (CUSTOMERS,))
    connection.close()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]))
