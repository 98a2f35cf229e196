"""Administrators who raise and lower the finalized features of a run's cluster.

A confirmed level is what every node says at the end, whatever became of controllers and snapshots
since. A change without an answer may have been made, or be made later.
"""

import asyncio
from functools import partial
from random import Random
from typing import Final

from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.metadata.image.features import (
    ELR_VERSION,
    GROUP_VERSION,
    METADATA_VERSION,
    METADATA_VERSION_MAX,
    metadata_version_needed,
)
from ottla.model.errors import ErrorCode
from ottla.model.types import NodeId
from ottla.protocol.messages import update_features
from ottla.simulation.clients.workload import CLIENT, Connect, persist
from ottla.simulation.history.history import Violation
from ottla.simulation.plans.plan import Plan

UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
# Of `metadata.version`: between these nothing is lost by a downgrade, above there is none.
VERSIONS_EQUIVALENT: Final = range(23, METADATA_VERSION_MAX)


class Levels:
    """What one feature may be at: the last confirmed level, or one in doubt."""

    def __init__(self, level: int, *, is_delayed: bool) -> None:
        """`is_delayed`: requests in doubt may take effect after later ones."""
        self.confirmed = level
        self._in_doubt: set[int] = set()
        self._is_delayed = is_delayed

    @property
    def possible(self) -> set[int]:
        return {self.confirmed, *self._in_doubt}

    def confirm(self, level: int) -> None:
        self.confirmed = level
        if not self._is_delayed:
            self._in_doubt.clear()

    def doubt(self, level: int) -> None:
        self._in_doubt.add(level)


class FeatureChanges:
    def __init__(self, plan: Plan, connect: Connect) -> None:
        self.counts: dict[str, int] = {}
        self.is_over = False
        self._plan = plan
        self._connect = connect
        formatted = {METADATA_VERSION: plan.metadata_version, **plan.features}
        self._levels = {
            name: Levels(formatted.get(name, 0), is_delayed=plan.is_delayed)
            for name in (METADATA_VERSION, ELR_VERSION, GROUP_VERSION)
        }

    def begin(self, group: asyncio.TaskGroup) -> None:
        rates = self._plan.rates
        if rates.elr_change:
            group.create_task(self._change("elr_change", rates.elr_change, [ELR_VERSION]))
        if rates.feature_change:
            names = [METADATA_VERSION, GROUP_VERSION]
            group.create_task(self._change("feature_change", rates.feature_change, names))

    async def audit(self) -> None:
        """Every node tells its clients the levels that were confirmed."""
        cluster = self._connect("feature-auditor", CLIENT)
        for node in range(1, self._plan.brokers + 1):
            connection = await persist(partial(cluster.broker, NodeId(node)))
            finalized = {
                each.name: each.max_version_level
                for each in connection.api_versions.finalized_features
            }
            for name, levels in self._levels.items():
                if (found := finalized.get(name, 0)) not in levels.possible:
                    raise Violation(
                        f"{name} is {found} on node {node}, and {levels.confirmed} was confirmed"
                    )
        cluster.close()

    async def _change(self, kind: str, rate: float, names: list[str]) -> None:
        chance = Random(f"{kind}/{self._plan.seed}")
        cluster = self._connect(f"{kind}-admin", CLIENT)
        while True:
            await asyncio.sleep(chance.expovariate(rate))
            if self.is_over:
                return
            self.counts[kind] = self.counts.get(kind, 0) + 1
            name = chance.choice(names)
            await self._set(cluster, name, self._next_level(name, chance))

    def _next_level(self, name: str, chance: Random) -> int:
        if name != METADATA_VERSION:
            return chance.choice((0, 1))
        if chance.random() < 0.2:
            return METADATA_VERSION_MAX
        return chance.choice(VERSIONS_EQUIVALENT)

    async def _set(self, cluster: Cluster, name: str, level: int) -> None:
        levels = self._levels[name]
        before = levels.possible
        kind = SAFE_DOWNGRADE if level < levels.confirmed else UPGRADE
        update = update_features.FeatureUpdateKey(name, level, upgrade_type=kind)
        request = update_features.Request(CLIENT.request_ms_max, [update])
        try:
            connection = await cluster.controller()
        except ClientError:
            return  # Nobody was asked.
        try:
            response = await connection.ask(
                request, update_features.Response, timeout_ms=CLIENT.request_ms_max
            )
        except ClientError:
            levels.doubt(level)
            return
        if response.error_code == ErrorCode.NONE:
            levels.confirm(level)
        elif response.error_code != ErrorCode.INVALID_UPDATE_VERSION:
            levels.doubt(level)  # A deposed controller answers for decisions that may yet stand.
        elif before == {levels.confirmed} and self._is_valid(name, levels.confirmed, level):
            raise Violation(f"{name} {levels.confirmed} to {level}: {response.error_message}")

    def _is_valid(self, name: str, before: int, level: int) -> bool:
        if name == METADATA_VERSION:
            return level >= before or before in VERSIONS_EQUIVALENT
        version = min(self._levels[METADATA_VERSION].possible)
        return version >= metadata_version_needed(name, level)
