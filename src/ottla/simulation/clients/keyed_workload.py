"""Clients of a compacted topic: producers of few keys and tombstones, and complete reads."""

import asyncio
from functools import partial
from random import Random
from typing import Final

from ottla.client.admin import Admin
from ottla.client.delivery import ProducerSettings, Written
from ottla.client.errors import ClientError, Refused
from ottla.client.offsets import EARLIEST, LATEST, find_offsets
from ottla.client.producer import Producer
from ottla.client.reader import Reader
from ottla.model.errors import ErrorCode
from ottla.model.types import Offset, TopicPartition
from ottla.simulation.clients.workload import (
    CLIENT,
    READ,
    RETRY_SECONDS,
    Connect,
    Unfailing,
    may_fail,
    persist,
)
from ottla.simulation.history.history import Violation
from ottla.simulation.history.keyed_history import Found, KeyedHistory, KeyedSend
from ottla.simulation.plans.plan import Plan

TOPIC: Final = "keyed-0"
PLACE: Final = TopicPartition(TOPIC, 0)
KEYS: Final = 6
TOMBSTONES: Final = 0.15
ID: Final = "id"
CONFIGS: Final = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "2048",
    "min.cleanable.dirty.ratio": "0.01",
}


class KeyedWorkload:
    def __init__(self, plan: Plan, connect: Connect) -> None:
        self.history = KeyedHistory()
        self.is_over = False
        self._plan = plan
        self._connect = connect

    async def create_topic(self) -> None:
        admin = Admin(self._connect("keyed-admin", CLIENT))
        chance = Random(f"keyed/{self._plan.seed}")
        configs = CONFIGS | {"delete.retention.ms": chance.choice(("100", "86400000"))}
        await persist(partial(_create, admin, configs))

    def begin(self, group: asyncio.TaskGroup) -> None:
        for number in range(self._plan.keyed_producers):
            group.create_task(self._produce(f"keyed-producer-{number}"))
        if self._plan.keyed_producers:
            group.create_task(self._read_again_and_again())

    async def audit(self) -> None:
        if self._plan.keyed_producers:
            await persist(partial(self._read, is_final=True))
            self.history.check_order()

    async def _produce(self, name: str) -> None:
        chance = Random(f"{name}/{self._plan.seed}")
        settings = ProducerSettings(
            is_idempotent=True,
            linger_ms=chance.choice((0, 20)),
            codec=chance.choice((0, 1, 4)),
            delivery_ms_max=30_000,
            request_ms_max=2_000,
        )
        count = 0
        async with asyncio.TaskGroup() as group:
            producer = Producer(self._connect(name, CLIENT), settings)
            async with Unfailing(producer):
                while not self.is_over:
                    await asyncio.sleep(chance.expovariate(self._plan.records_per_second))
                    id_ = f"{name}/{count}".encode()
                    count += 1
                    key = b"key-%d" % chance.randrange(KEYS)
                    value = None if chance.random() < TOMBSTONES else bytes(chance.randrange(200))
                    try:
                        headers = ((ID, id_),)
                        future = await producer.send(
                            TOPIC, value, key, headers=headers, partition=0
                        )
                    except ClientError as error:
                        _check_explained(error, name)
                        continue
                    self.history.sending(id_, KeyedSend(key, value, name))
                    group.create_task(self._wait(future, id_))

    async def _wait(self, future: "asyncio.Future[Written]", id_: bytes) -> None:
        try:
            written = await future
        except ClientError as error:
            _check_explained(error, id_.decode())
        else:
            self.history.acknowledged(id_, written.offset)

    async def _read_again_and_again(self) -> None:
        while not self.is_over:
            await asyncio.sleep(RETRY_SECONDS)
            try:
                await self._read()
            except ClientError as error:
                _check_explained(error, "a reader of the compacted topic")

    async def _read(self, *, is_final: bool = False) -> None:
        """Read everything from the start of the log up to its end, and check it."""
        cluster = self._connect("keyed-reader", CLIENT)
        try:
            newest = self.history.newest()
            end = (await find_offsets(cluster, {PLACE: LATEST}))[PLACE].offset
            start = (await find_offsets(cluster, {PLACE: EARLIEST}))[PLACE].offset
            reader = Reader(cluster, {PLACE: start}, READ)
            records = await _read_to(reader, end)
            self.history.check_pass(records, end, newest, is_final=is_final)
        finally:
            cluster.close()


async def _read_to(reader: Reader, end: Offset) -> list[Found]:
    records = []
    while reader.positions[PLACE] < end:
        for message in await reader.poll(wait_ms=1_000):
            id_ = dict(message.headers)[ID] or b""
            records.append(Found(message.offset, id_, message.key or b"", message.value))
    return records


async def _create(admin: Admin, configs: dict[str, str]) -> None:
    try:
        await admin.create_topic(TOPIC, partitions=1, configs=configs)
    except Refused as refused:  # An attempt before this one may have succeeded unheard.
        if refused.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            raise


def _check_explained(error: ClientError, name: str) -> None:
    if not (error.is_retriable or may_fail(error)):
        raise Violation(f"{name}: {error!r}") from error
