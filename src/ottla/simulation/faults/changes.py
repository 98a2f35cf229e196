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
from ottla.client.metadata import UnknownPartition, UnknownTopic
from ottla.client.offsets import LATEST, find_offsets
from ottla.groups.placement import OFFSETS_TOPIC
from ottla.model.errors import ErrorCode
from ottla.model.types import TopicPartition
from ottla.simulation.clients.workload import CLIENT, Connect, Workload, persist
from ottla.simulation.history.history import Violation

CONFIGS: Final = {
    "internal.segment.bytes": ("8192", "65536"),
    "compression.type": ("producer", "gzip", "lz4"),
    "segment.ms": ("200", "604800000"),
    "index.interval.bytes": ("64", "4096"),
    "flush.ms": ("100", "9223372036854775807"),
}
MIN_ISR: Final = "min.insync.replicas"
MIN_ISRS: Final = ("1", "2", "3")
UNCLEAN: Final = "unclean.leader.election.enable"
UNCLEAN_VALUES: Final = ("true", "true", "false")
# So that the log of groups is rolled and cleaned within a short run.
SMALL_LOG: Final = {"internal.segment.bytes": "4096", "min.cleanable.dirty.ratio": "0.01"}


class Changes:
    def __init__(self, workload: Workload, connect: Connect) -> None:
        self.configs: dict[str, dict[str, str]] = {}  # What was confirmed, by topic.
        self._asked: set[tuple[str, str, str | None]] = set()  # Topic, name and value.
        self.unclean: set[str] = set()  # Topics that have, or had, or may have unclean elections.
        self._workload = workload
        self._connect = connect

    def begin(self, group: asyncio.TaskGroup) -> None:
        rates = self._workload.plan.rates
        if rates.record_deletion:
            group.create_task(self._delete_records(rates.record_deletion))
        if rates.config_change:
            group.create_task(self._alter_configs(rates.config_change))
        if rates.min_isr_change:
            group.create_task(self._alter_min_isr(rates.min_isr_change))
        if rates.unclean_change:
            group.create_task(self._alter_unclean(rates.unclean_change))

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
            if topic in self._workload.deleted or not expected:
                continue
            ask = partial(admin.describe_configs, ResourceType.TOPIC, topic, list(expected))
            found = {config.name: config.value for config in await persist(ask)}
            others = {key for key in expected if found.get(key) != expected[key]}
            if self._workload.plan.is_delayed:
                # A request that the client sent again may have arrived after a later one.
                others -= {key for key in others if (topic, key, found.get(key)) in self._asked}
            if others:
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
            await self._alter(admin, topic, key, value)
            self.configs.setdefault(topic, {})[key] = value

    async def _alter_min_isr(self, rate: float) -> None:
        """Of a topic, or of the cluster; or a topic goes by that of the cluster again."""
        chance = Random(f"min isr/{self._workload.plan.seed}")
        admin = Admin(self._connect("min-isr-admin", CLIENT))
        while True:
            await asyncio.sleep(chance.expovariate(rate))
            if self._workload.is_over:
                return
            topic, value = chance.choice(self._workload.topics), chance.choice(MIN_ISRS)
            confirmed = self.configs.setdefault(topic, {})
            match chance.choice(("topic", "topic", "default", "cluster")):
                case "topic":
                    confirmed.pop(MIN_ISR, None)
                    await self._alter(admin, topic, MIN_ISR, value)
                    confirmed[MIN_ISR] = value
                case "default":
                    confirmed.pop(MIN_ISR, None)
                    await self._alter(admin, topic, MIN_ISR, None)
                case _:
                    change = [(Operation.SET, MIN_ISR, value)]
                    await persist(partial(admin.alter_configs, ResourceType.BROKER, "", change))

    async def _alter(self, admin: Admin, topic: str, key: str, value: str | None) -> None:
        """None: the topic has no value of its own."""
        self._asked.add((topic, key, value))
        await persist(partial(_alter, admin, topic, key, value))

    async def _alter_unclean(self, rate: float) -> None:
        chance = Random(f"unclean/{self._workload.plan.seed}")
        admin = Admin(self._connect("unclean-admin", CLIENT))
        while True:
            await asyncio.sleep(chance.expovariate(rate))
            if self._workload.is_over:
                return
            topic, value = chance.choice(self._workload.topics), chance.choice(UNCLEAN_VALUES)
            confirmed = self.configs.setdefault(topic, {})
            confirmed.pop(UNCLEAN, None)
            if value == "true":
                self.unclean.add(topic)
            await self._alter(admin, topic, UNCLEAN, value)
            confirmed[UNCLEAN] = value

    async def _delete_records(self, rate: float) -> None:
        workload = self._workload
        chance = Random(f"deletion/{workload.plan.seed}")
        cluster = self._connect("trimmer", CLIENT)
        while True:
            await asyncio.sleep(chance.expovariate(rate))
            if workload.is_over:
                return
            topic = chance.choice(workload.topics)
            place = TopicPartition(topic, chance.randrange(workload.partitions[topic]))
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
        except (UnknownTopic, UnknownPartition):
            cluster.forget(place.topic)  # It was deleted meanwhile, or is not known here yet.
        except Refused as refused:
            plan = self._workload.plan
            # A new leader may not know yet that so much is committed.
            is_explained = plan.may_lose_acknowledged or not plan.is_known_everywhere
            if refused.code != ErrorCode.OFFSET_OUT_OF_RANGE or not is_explained:
                raise


async def _alter(admin: Admin, topic: str, key: str, value: str | None) -> None:
    operation = Operation.DELETE if value is None else Operation.SET
    with suppress(UnknownTopic):  # It was deleted meanwhile.
        await admin.alter_configs(ResourceType.TOPIC, topic, [(operation, key, value)])
