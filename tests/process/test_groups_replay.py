"""`ottla dlq replay`, killed again and again: every dead letter goes back once, and only once."""

import random
import subprocess
import sys
import time
from collections import Counter

from ottla.client.blocking import Client, Outgoing
from ottla.client.message import Message
from ottla.client.offsets import LATEST, find_offsets
from ottla.consumer.dead_letters import headers_for
from ottla.model.types import TopicPartition
from tests.process.conftest import NewBroker

LETTERS = 8_000
PARTITIONS = 3
KILLS = 6
PLACES = [TopicPartition("orders", index) for index in range(PARTITIONS)]


def test_a_replay_that_is_killed_in_the_middle_sends_nothing_twice(new_broker: NewBroker) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    chance = random.Random(seed)
    broker = new_broker().start()
    with Client(broker.bootstrap) as client:
        for topic in ("orders", "orders.dlq"):
            client.run(client.admin.create_topic(topic, partitions=PARTITIONS))
        client.write("orders.dlq", [letter(number) for number in range(LETTERS)])
        command = [sys.executable, "-m", "ottla.cli.main", "dlq", "replay", "orders.dlq"]
        command += ["--execute", "--bootstrap-server", broker.bootstrap]
        counts = [killed_in_the_middle(command, client, chance) for _ in range(KILLS)]
        done = subprocess.run(command, capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert len({count for count in counts if count < LETTERS}) >= KILLS / 2, counts
        starts = dict.fromkeys(PLACES, 0)
        back = Counter(message.value for message in client.read(starts, to_end=True))
    assert len(back) == LETTERS, f"seed {seed}"
    assert set(back.values()) == {1}, f"seed {seed}"


def killed_in_the_middle(command: list[str], client: Client, chance: random.Random) -> int:
    """How many letters are back when it ends."""
    before = count(client)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None and count(client) == before:
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.03))
        process.kill()
    return count(client)


def count(client: Client) -> int:
    found = client.run(find_offsets(client.cluster, dict.fromkeys(PLACES, LATEST)))
    return sum(one.offset for one in found.values())


def letter(number: int) -> Outgoing:
    place, now = number % PARTITIONS, int(time.time() * 1000)
    origin = Message("orders", place, number, now, False, None, b"%d" % number, ())
    headers = tuple(headers_for(origin, ValueError("bad"), group="g", handler="h"))
    return Outgoing(origin.value, None, headers, partition=number % 2, timestamp_ms=now)
