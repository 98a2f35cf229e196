"""Small plans: what tests of the simulation itself run."""

from collections.abc import Sequence
from dataclasses import replace

from ottla.simulation.group_plan import GroupPlan, Kind
from ottla.simulation.history import IDEMPOTENT
from ottla.simulation.plan import Plan, Rates, plan_for, with_groups


def small_plan(seed: int = 1, rates: Rates | None = None, *, is_synced: bool = False) -> Plan:
    settings = {"auto.create.topics.enable": "false"}
    if is_synced:
        settings["log.flush.interval.messages"] = "1"
    return replace(
        plan_for(seed),
        seconds=1.0,
        topics=1,
        partitions=2,
        producers=(IDEMPOTENT,),
        consumers=1,
        records_per_second=40.0,
        is_synced=is_synced,
        log_dirs=1,
        rates=rates or Rates(),
        settings=settings,
        groups=(),
    )


def group_plan(
    seed: int = 1,
    rates: Rates | None = None,
    kinds: Sequence[Kind] = (Kind.CLASSIC, Kind.CONSUMER),
    *,
    is_cooperative: bool = False,
) -> Plan:
    """A group of two members of each of these kinds, one of them static."""
    groups = tuple(
        GroupPlan(
            name=kind.value,
            kind=kind,
            members=2,
            static=int(kind is not Kind.CLIENT),
            session_ms=1_000,
            rebalance_ms=1_500,
            heartbeat_ms=200,
            commit_ms=200,
            is_cooperative=is_cooperative,
            calm_seconds=1.0,
        )
        for kind in kinds
    )
    plan = replace(small_plan(seed), producers=(), consumers=0)
    return replace(with_groups(plan, groups), rates=rates or Rates(), seconds=4.0)
