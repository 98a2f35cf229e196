"""The tills of the shops: sends orders with aiokafka."""

import asyncio
import random
import sys

from aiokafka import AIOKafkaProducer

from examples.shop.orders import TOPIC, Sent, next_order


async def main(bootstrap: str, seconds: float, per_second: float) -> None:
    sent, source = Sent("till"), random.Random(2)
    loop = asyncio.get_running_loop()
    async with AIOKafkaProducer(
        bootstrap_servers=bootstrap, enable_idempotence=True, linger_ms=20
    ) as producer:
        began = loop.time()
        while (now := loop.time() - began) < seconds:
            while sent.good + sent.bad < now * per_second:
                key, value = next_order(source, sent)
                await producer.send(TOPIC, value, key)
            await asyncio.sleep(0.02)
        await producer.flush()
    sent.tell()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3])))
