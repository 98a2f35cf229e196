"""Small plans: what tests of the simulation itself run."""

from dataclasses import replace

from ottla.simulation.history import IDEMPOTENT
from ottla.simulation.plan import Plan, Rates, plan_for


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
    )
