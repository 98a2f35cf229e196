"""What administrators change while a run goes on: they delete records, and alter configs.

What was confirmed must hold, also after whatever becomes of the broker; what was not may.
"""

import asyncio
from contextlib import suppress
from functools import partial
from random import Random
from typing import Final

from ottla.client.admin import Admin, Operation, ResourceType
from ottla.client.cluster import Cluster
from ottla.client.errors import Refused
from ottla.client.metadata import UnknownTopic
from ottla.client.offsets import LATEST, find_offsets
from ottla.groups.placement import OFFSETS_TOPIC
from ottla.model.errors import ErrorCode
from ottla.model.types import TopicPartition
from ottla.simulation.history import Violation
from ottla.simulation.workload import CLIENT, Connect, Workload, persist

CONFIGS: Final = {
    "internal.segment.bytes": ("8192", "65536"),
    "compression.type": ("producer", "gzip", "lz4"),
    "segment.ms": ("200", "604800000"),
    "index.interval.bytes": ("64", "4096"),
    "flush.ms": ("100", "9223372036854775807"),
}
# So that the log of groups is rolled and cleaned within a short run.
SMALL_LOG: Final = {"internal.segment.bytes": "2048", "min.cleanable.dirty.ratio": "0.01"}


class Changes:
    def __init__(self, workload: Workload, connect: Connect) -> None:
        self.configs: dict[str, dict[str, str]] = {}  # What was confirmed, by topic.
        self._workload = workload
        self._connect = connect

    def begin(self, group: asyncio.TaskGroup) -> None:
        rates = self._workload.plan.rates
        if rates.record_deletion:
            group.create_task(self._delete_records(rates.record_deletion))
        if rates.config_change:
            group.create_task(self._alter_configs(rates.config_change))

    async def shrink_offsets_log(self) -> None:
        admin = Admin(self._connect("config-admin", CLIENT))
        changes = [(Operation.SET, *change) for change in SMALL_LOG.items()]
        alter = partial(admin.alter_configs, ResourceType.TOPIC, OFFSETS_TOPIC, changes)
        while True:
            try:
                await persist(alter)
            except Violation as violation:
                if not isinstance(violation.__cause__, UnknownTopic):
                    raise
                await asyncio.sleep(0.1)  # The first group makes it.
            else:
                return

    async def audit(self) -> None:
        """Every confirmed config is in effect."""
        admin = Admin(self._connect("config-auditor", CLIENT))
        for topic, expected in self.configs.items():
            if topic in self._workload.deleted:
                continue
            ask = partial(admin.describe_configs, ResourceType.TOPIC, topic, list(expected))
            found = {config.name: config.value for config in await persist(ask)}
            if found != expected:
                raise Violation(f"{topic} has {found}, and {expected} was confirmed")

    async def _alter_configs(self, rate: float) -> None:
        chance = Random(f"configs/{self._workload.plan.seed}")
        admin = Admin(self._connect("config-admin", CLIENT))
        while True:
            await asyncio.sleep(chance.expovariate(rate))
            if self._workload.is_over:
                return
            topic, key = chance.choice(self._workload.topics), chance.choice(sorted(CONFIGS))
            value = chance.choice(CONFIGS[key])
            await persist(partial(_alter, admin, topic, key, value))
            self.configs.setdefault(topic, {})[key] = value

    async def _delete_records(self, rate: float) -> None:
        workload = self._workload
        chance = Random(f"deletion/{workload.plan.seed}")
        cluster = self._connect("trimmer", CLIENT)
        while True:
            await asyncio.sleep(chance.expovariate(rate))
            if workload.is_over:
                return
            partition = chance.randrange(workload.plan.partitions)
            place = TopicPartition(chance.choice(workload.topics), partition)
            await persist(partial(self._trim, cluster, place, chance))

    async def _trim(self, cluster: Cluster, place: TopicPartition, chance: Random) -> None:
        try:
            end = (await find_offsets(cluster, {place: LATEST}))[place].offset
            trim = self._workload.history.trims[place]
            # What was asked for before, and not confirmed, may have been done.
            offset = chance.randint(trim.asked, max(end, trim.asked))
            trim.asked = offset
            await Admin(cluster).delete_records({place: offset})
            trim.done = max(trim.done, offset)
        except UnknownTopic:
            pass  # It was deleted meanwhile.
        except Refused as refused:
            plan = self._workload.plan
            # A new leader may not know yet that so much is committed.
            is_explained = plan.may_lose_acknowledged or not plan.is_known_everywhere
            if refused.code != ErrorCode.OFFSET_OUT_OF_RANGE or not is_explained:
                raise


async def _alter(admin: Admin, topic: str, key: str, value: str) -> None:
    with suppress(UnknownTopic):  # It was deleted meanwhile.
        await admin.alter_configs(ResourceType.TOPIC, topic, [(Operation.SET, key, value)])
