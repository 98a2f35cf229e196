"""A leader that was stopped for long, and runs again: what it says before it knows of its fall."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from ottla.client.admin import Admin
from ottla.client.cluster import Cluster
from ottla.client.delivery import ProducerSettings
from ottla.client.dialer import Dialer
from ottla.client.producer import Producer
from ottla.env.network import Address
from ottla.model.errors import ErrorCode
from ottla.model.types import TopicPartition
from ottla.protocol.messages import fetch
from ottla.simulation.runs.running import new_loop
from ottla.simulation.world.clock import VirtualClock
from ottla.simulation.world.loop import VirtualLoop
from ottla.simulation.world.network import SimulatedNetwork
from ottla.simulation.world.nodes import PORT, Nodes
from ottla.simulation.world.trace import Trace
from tests.simulation import cluster_mutants as mutants
from tests.unit.simulation.small import small_cluster

PLACE = TopicPartition("t", 0)
PAUSE_SECONDS = 20.0
SEEDS = range(16, 30)  # Each of them shows the bug with a chance of about a seventh.
ASKED_EVERY_SECONDS = 0.0002


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("is_controller", [False, True])
@pytest.mark.parametrize("is_trusting", [False, True])
def test_it_says_of_no_offset_that_it_is_out_of_range(
    is_trusting: bool, is_controller: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that sends no leader epoch would start all over for it."""
    if is_trusting:
        mutants.trusts_its_old_image(monkeypatch)
    codes: Counter[int] = Counter()
    for seed in SEEDS:
        codes += run(seed, is_controller=is_controller)
    assert codes[ErrorCode.NOT_LEADER_OR_FOLLOWER] > 0
    assert codes[ErrorCode.NONE] > 0, "in the end it follows, and has everything"
    assert (codes[ErrorCode.OFFSET_OUT_OF_RANGE] > 0) is is_trusting


def run(seed: int, *, is_controller: bool) -> Counter[int]:
    loop = new_loop()
    network = SimulatedNetwork(loop, Random(seed), Trace(lambda: loop.now_ns))
    nodes = Nodes(small_cluster(seed), loop, network)
    try:
        return loop.run_until_complete(pause_and_ask(loop, network, nodes, is_controller))
    finally:
        nodes.end()
        loop.close()


async def pause_and_ask(
    loop: VirtualLoop, network: SimulatedNetwork, nodes: Nodes, is_controller: bool
) -> Counter[int]:
    await nodes.wait_serving()
    host = network.host("client")
    cluster = Cluster(nodes.addresses, network=host, clock=VirtualClock(loop), source=Random(1))
    chosen = next(n for n, broker in nodes.serving() if broker.quorum.is_leader is is_controller)
    others = [number for number in nodes.machines if number != chosen]
    await Admin(cluster).create_topic("t", assignments={0: [chosen, *others]})
    settings = ProducerSettings(acks=-1, delivery_ms_max=60_000, request_ms_max=2_000)
    async with Producer(cluster, settings) as producer:
        await (await producer.send("t", b"before", partition=0))
        leader = await cluster.leader_id(PLACE)
        machine = nodes.machines[leader]
        address = Address(machine.host, PORT)
        connection = await Dialer("old").dial(host, address, timeout_ms=2_000)
        machine.pause()
        for _ in range(5):  # The first waits for the leader, and is written again by the next one.
            written = await (await producer.send("t", b"meanwhile", partition=0))
        await asyncio.sleep(PAUSE_SECONDS)
    assert await cluster.leader_id(PLACE) != leader
    machine.resume()
    codes: Counter[int] = Counter()
    part = fetch.FetchPartition(0, fetch_offset=written.offset + 1)
    while not codes[ErrorCode.NONE]:
        request = fetch.Request(max_wait_ms=0, topics=[fetch.FetchTopic("t", partitions=[part])])
        answer = await connection.ask(request, fetch.Response, timeout_ms=2_000, version_max=11)
        codes[answer.responses[0].partitions[0].error_code] += 1
        await asyncio.sleep(ASKED_EVERY_SECONDS)
    cluster.close()
    connection.close()
    return codes
