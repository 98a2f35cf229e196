"""Three real brokers under faults from a seed: kills, lost power, silence, broken connections.

Producers write values that are unique, with acks=all, to whoever leads as far as the controller
knows; consumers read what is committed. At the end everything heals, and then every acknowledged
value is where it was acknowledged, what was read is still there, and all replicas are alike.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from random import Random
from typing import Any

from ottla.client.errors import ClientError
from ottla.model.errors import ErrorCode
from ottla.model.types import NodeId
from ottla.protocol.messages import broker_heartbeat, fetch, produce
from ottla.records.batch import Batch
from ottla.records.record import Record, build_batch, read_records
from ottla.simulation.history.history import Violation
from tests.unit.broker.replicating import Cluster, Node, replicating

PARTITIONS = 2
PRODUCERS = 3
ELR = {"eligible.leader.replicas.version": 1}
RETRIABLE = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_ID,  # A broker that has just started, and has read nothing yet.
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class ReplicatedWorld:
    def __init__(self, seed: int, cluster: Cluster, *, has_elr: bool) -> None:
        self.random = Random(seed)
        self.cluster = cluster
        self.has_elr = has_elr
        self.acked: dict[tuple[int, int], bytes] = {}  # By partition and offset.
        self.seen: dict[tuple[int, int], bytes] = {}
        self.lost_power: set[int] = set()  # Those of whom the controller does not know it yet.
        self.dead: list[tuple[int, Node]] = []  # When to notice it, if nobody did before.
        self.tasks: list[asyncio.Task[None]] = []
        self.values = 0
        self.is_over = False

    def run(self, rounds: int) -> None:
        cluster, loop = self.cluster, self.cluster.loop
        cluster.topic(partitions=PARTITIONS, min_insync_replicas="2")
        self.tasks = [loop.create_task(self.produce_for_ever(n)) for n in range(PRODUCERS)]
        self.tasks += [loop.create_task(self.consume_for_ever()), loop.create_task(self.beat())]
        for _ in range(rounds):
            cluster.pass_ms(self.random.randrange(1, 400))
            self.break_something()
        self.heal()
        self.check()

    # Faults.

    def break_something(self) -> None:
        actions = [self.kill, self.kill, self.restart, self.restart, self.clog, self.reset]
        actions += [self.notice, self.notice, self.fence_the_living]
        self.random.choice(actions)()

    def kill(self) -> None:
        up = [node for node in self.cluster.nodes.values() if node.is_up]
        if len(up) < 2:
            return
        node = self.random.choice(up)
        may_lose_power = self.has_elr and self.may_lose_power(node)
        node.kill()
        if may_lose_power and self.random.random() < 0.4:
            node.disk.cut_power()
            self.lost_power.add(node.number)
        else:
            node.disk.kill()

    def may_lose_power(self, node: Node) -> bool:
        """As long as everything is kept by somebody else who may lead, and stays so.

        One at a time: the minimum of in-sync replicas is two.
        """
        if self.lost_power:
            return False
        for index in range(PARTITIONS):
            state = self.cluster.state(index)
            if not {*state.isr, *state.elr} - {node.number}:
                return False
        return True

    def restart(self) -> None:
        down = [node for node in self.cluster.nodes.values() if not node.is_up]
        if down:
            node = self.random.choice(down)
            self.cluster.notice_death(node)
            node.start()
            self.lost_power.discard(node.number)

    def notice(self) -> None:
        for node in self.cluster.nodes.values():
            if not node.is_up:
                self.cluster.notice_death(node)

    def fence_the_living(self) -> None:
        """A mistake of whoever watches them; their next heartbeat puts it right."""
        node = self.random.choice(list(self.cluster.nodes.values()))
        if node.is_up:
            self.cluster.notice_death(node)

    def clog(self) -> None:
        node = self.random.choice(list(self.cluster.nodes.values()))
        self.cluster.network.clog(node.host, self.random.randrange(10, 2_000) * 1_000_000)

    def reset(self) -> None:
        node = self.random.choice(list(self.cluster.nodes.values()))
        self.cluster.network.reset_some(node.host, 0.5)

    def heal(self) -> None:
        cluster = self.cluster
        for _ in cluster.nodes:
            self.restart()
        cluster.pass_ms(3_000)
        indexes = range(PARTITIONS)
        try:
            cluster.until(lambda: all(len(cluster.state(i).isr) == 3 for i in indexes), 60)
            before = len(self.acked)
            cluster.until(lambda: len(self.acked) > before + 10, 60)  # It works again.
        except TimeoutError as error:
            states = [cluster.state(i) for i in indexes]
            raise Violation(f"not well after all has healed: {states}") from error
        self.is_over = True
        done, _ = cluster.run(asyncio.wait(self.tasks, timeout=60))
        for task in done:
            task.result()
        cluster.until(lambda: all(len(self.ends(i)) == 1 for i in indexes), 60)

    def ends(self, index: int) -> set[int]:
        nodes = self.cluster.nodes.values()
        return {node.partition(index).log.end_offset for node in nodes}

    # Clients.

    async def produce_for_ever(self, number: int) -> None:
        """An idempotent producer: it sends each value until it is acknowledged."""
        sequences = [0] * PARTITIONS
        while not self.is_over:
            index = self.random.randrange(PARTITIONS)
            self.values += 1
            value = b"%d" % self.values
            # Of now: a broker that starts forgets producers whose last record is a day old.
            record = [Record(0, self.cluster.clock.wall(), None, value)]
            batch = bytes(
                build_batch(
                    record, producer_id=number, producer_epoch=0, base_sequence=sequences[index]
                )
            )
            while not self.is_over:
                with contextlib.suppress(ClientError, KeyError):
                    answer = await self.produce(index, batch)
                    if answer.error_code == 0:
                        self.note(self.acked, (index, answer.base_offset), value)
                        sequences[index] += 1
                        break
                    if answer.error_code not in RETRIABLE:
                        raise Violation(f"{value!r} is refused with {answer.error_code}")
                await asyncio.sleep(self.random.randrange(5, 40) / 1000)
            await asyncio.sleep(self.random.randrange(1, 40) / 1000)

    async def produce(self, index: int, batch: bytes) -> produce.PartitionProduceResponse:
        topic_id = self.cluster.log.image.topics_by_name["t"].id
        connection = await self.cluster.connection(self.cluster.leader(index))
        part = produce.PartitionProduceData(index, bytearray(batch))
        topic = produce.TopicProduceData(topic_id=topic_id, partition_data=[part])
        request = produce.Request(acks=-1, timeout_ms=1_500, topic_data=[topic])
        response = await connection.ask(request, produce.Response, timeout_ms=4_000)
        return response.responses[0].partition_responses[0]

    async def consume_for_ever(self) -> None:
        while not self.is_over:
            index = self.random.randrange(PARTITIONS)
            with contextlib.suppress(ClientError, KeyError):
                await self.consume(index)
            await asyncio.sleep(self.random.randrange(20, 200) / 1000)

    async def consume(self, index: int) -> None:
        part = fetch.FetchPartition(partition=index, partition_max_bytes=1 << 20)
        topic = fetch.FetchTopic(
            topic_id=self.cluster.log.image.topics_by_name["t"].id, partitions=[part]
        )
        request = fetch.Request(max_wait_ms=0, min_bytes=0, topics=[topic])
        connection = await self.cluster.connection(self.cluster.leader(index))
        response = await connection.ask(request, fetch.Response, timeout_ms=4_000)
        answer = response.responses[0].partitions[0]
        if not answer.error_code:
            for offset, value in _records(bytes(answer.records or b"")):
                self.note(self.seen, (index, offset), value)

    async def beat(self) -> None:
        """The heartbeats of those who live, which unfence them."""
        while not self.is_over:
            for node in self.cluster.nodes.values():
                known = self.cluster.log.image.brokers.get(NodeId(node.number))
                if node.is_up and known and known.epoch == node.broker.lifecycle.broker_epoch:
                    offset = node.broker.image.offset
                    request = broker_heartbeat.Request(node.number, known.epoch, offset)
                    self.cluster.log.decide(request)
            await asyncio.sleep(0.3)

    def note(
        self, known: dict[tuple[int, int], bytes], place: tuple[int, int], value: bytes
    ) -> None:
        if known.setdefault(place, value) != value:
            raise Violation(f"{place} is {value!r}, but was {known[place]!r}")

    # What must hold.

    def check(self) -> None:
        for index in range(PARTITIONS):
            logs = [node.values(index) for node in self.cluster.nodes.values()]
            if any(log != logs[0] for log in logs):
                raise Violation(f"the replicas of partition {index} are not alike")
            self.check_known(index, logs[0], self.acked, "acknowledged")
            self.check_known(index, logs[0], self.seen, "read")
            if len(set(logs[0])) < len(logs[0]):
                raise Violation("a value is there twice, though it was sent once")

    def check_known(
        self, index: int, log: list[bytes], known: dict[tuple[int, int], bytes], how: str
    ) -> None:
        for (partition, offset), value in known.items():
            if partition == index and (offset >= len(log) or log[offset] != value):
                there = log[offset] if offset < len(log) else None
                raise Violation(f"{value!r} was {how} at {index}/{offset}; there is {there!r}")


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    position = 0
    while position < len(data):
        try:
            batch = Batch.parse(data, position)
        except ValueError:
            return  # The last one is cut.
        for record in read_records(batch, 1 << 20):
            yield record.offset, record.value or b""
        position += batch.size


def run(seed: int, rounds: int = 25) -> dict[str, Any]:
    has_elr = seed % 3 != 0
    settings = {"replica_lag_time_max_ms": 1_000, "replica_fetch_backoff_ms": 200}
    with replicating(features=ELR if has_elr else None, **settings) as cluster:
        world = ReplicatedWorld(seed, cluster, has_elr=has_elr)
        try:
            world.run(rounds)
        finally:
            world.is_over = True
            for task in world.tasks:
                task.cancel()
    return {"acked": len(world.acked), "read": len(world.seen)}
