"""All APIs in any order, in virtual time, while a disk fails, fills up and comes back.

Whatever is asked, every request is answered once or its connection is closed, no handler fails,
and when all have gone nothing of them is left. A seed that fails fails again: OTTLA_FUZZ_SEED.
"""

import errno
import logging
import os
import random
from collections.abc import Sequence
from typing import Final

import pytest

from ottla.broker.coordinators.machine_partition import MachinePartition
from ottla.broker.wire.apis import Listener, served_on
from ottla.protocol.apis import ApiKey, request_class
from tests.fuzz.plausible import build
from tests.unit.broker.serving import Client, World, serving
from tests.unit.protocol.strategies import project

SERVED = served_on(Listener.BROKER)

SEEDS: Final = [int(os.environ["OTTLA_FUZZ_SEED"])] if "OTTLA_FUZZ_SEED" in os.environ else range(8)
REQUESTS: Final = 300
FREQUENT: Final = {ApiKey.PRODUCE: 20.0, ApiKey.FETCH: 20.0}
# What they do is asked for: too many of them, and nothing would be left to ask for.
RARE: Final = {
    ApiKey.DELETE_TOPICS: 0.4,
    ApiKey.DELETE_RECORDS: 0.4,
    ApiKey.ALTER_CONFIGS: 0.4,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: 0.4,
}
HARMLESS: Final = "/data-1/"  # The metadata log lies in the other directory.
OPERATIONS: Final = ("append", "sync", "read", "rename", "create", "truncate", "open", "remove")
ERRORS: Final = (errno.EIO, errno.ENOSPC, errno.EMFILE)
ROOM_BYTES: Final = 1 << 40


class Storm:
    def __init__(self, rng: random.Random, world: World) -> None:
        self._rng = rng
        self._world = world
        self._clients = [world.client() for _ in range(3)]
        self._asked: list[tuple[Client, int, str]] = []
        self._keys = list(SERVED)
        self._weights = [FREQUENT.get(key, RARE.get(key, 2.0)) for key in self._keys]  # type: ignore[call-overload]

    def ask(self) -> None:
        rng, world = self._rng, self._world
        number = rng.randrange(len(self._clients))
        if not self._clients[number].channel.is_open:
            self._clients[number] = world.client()
        client = self._clients[number]
        key = rng.choices(self._keys, self._weights)[0]
        cls = request_class(key)
        known: Sequence[int] = cls.VERSIONS  # type: ignore[attr-defined]
        version = rng.choice([version for version in SERVED[key].versions if version in known])
        request = project(build(cls, version, rng, world), version)
        asked = client.send(request, version)
        if key != ApiKey.PRODUCE or request.acks != 0:
            self._asked.append((client, asked, f"{ApiKey(key).name} v{version}: {request}"))

    def pass_time(self) -> None:
        rng, world = self._rng, self._world
        if rng.random() < 0.4:
            world.end_turn()
        if rng.random() < 0.2:
            world.pass_ms(rng.choice((1, 20, 700)))
        if rng.random() < 0.02:
            rng.choice(self._clients).close()

    def harm(self) -> None:
        rng, disk = self._rng, self._world.disk
        if rng.random() < 0.02:
            disk.fail(rng.choice(OPERATIONS), rng.choice(ERRORS), path_contains=HARMLESS)
        if rng.random() < 0.005:
            disk.capacity_bytes = disk.used_bytes + rng.choice((0, 50, 300))
        if rng.random() < 0.05:
            disk.capacity_bytes = ROOM_BYTES

    def live_again(self) -> None:
        """Stop or be killed, and start again."""
        world = self._world
        world.disk._failures.clear()
        world.disk.capacity_bytes = ROOM_BYTES
        if self._rng.random() < 0.5:
            world.stop()
        else:
            world.run(world.broker.abort())
            world.disk.kill()
        world.start()
        self._clients = [world.client() for _ in range(3)]
        self._asked.clear()

    def check(self) -> None:
        broker = self._world.broker
        assert not broker.failed.done(), broker.failed.exception()
        assert not broker.metrics.server_errors, self._asked[-1]

    def end(self) -> None:
        world = self._world
        world.disk._failures.clear()
        world.disk.capacity_bytes = ROOM_BYTES
        for _ in range(2):
            world.end_turn()
            world.pass_ms(35_000)  # Longer than anybody asked to wait.
        for client, asked, what in self._asked:
            assert client.has_answer(asked) or not client.channel.is_open, what
        for client in self._clients:
            client.answers()
        for partition in world.broker.partitions.all():
            # A coordinator watches its log for as long as it has it; a fetch, while it waits.
            assert all(isinstance(one, MachinePartition) for one in partition.watching)
            assert not partition._waiting
            assert not partition._staged
        self.check()


@pytest.mark.parametrize("has_faults", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_every_request_comes_to_its_end(seed: int, has_faults: bool) -> None:
    rng = random.Random(f"{seed}/{has_faults}")
    settings = {"log_flush_interval_messages": 1} if rng.random() < 0.3 else {}
    logging.disable(logging.CRITICAL)
    try:
        with serving(directories=["/data-0", "/data-1"], **settings) as world:
            world.topic("t", 2)
            world.topic("u", 1)
            storm = Storm(rng, world)
            for _ in range(REQUESTS):
                storm.ask()
                storm.pass_time()
                storm.check()
                if has_faults:
                    storm.harm()
                    if rng.random() < 0.01:
                        storm.live_again()
            storm.end()
    finally:
        logging.disable(logging.NOTSET)
