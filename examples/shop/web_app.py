"""The web shop: sends orders with confluent-kafka."""

import random
import sys
import time

from confluent_kafka import KafkaError, Message, Producer

from examples.shop.orders import TOPIC, Sent, next_order


def main(bootstrap: str, seconds: float, per_second: float) -> None:
    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 20}
    )
    sent, source = Sent("web"), random.Random(1)
    began = time.monotonic()
    while (now := time.monotonic() - began) < seconds:
        while sent.good + sent.bad < now * per_second:
            key, value = next_order(source, sent)
            producer.produce(TOPIC, value, key, on_delivery=delivered)
        producer.poll(0.02)
    producer.flush()
    sent.tell()


def delivered(error: KafkaError | None, _message: Message) -> None:
    if error is not None:
        raise SystemExit(f"an order was not written: {error}")


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]))
