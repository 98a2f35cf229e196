"""Additions to a seed's plan: damage on disks, hostile clients, compacted topics.

Each draws from a randomness of its own, so that the rest of the plan stays what it is without them.
"""

from dataclasses import replace
from random import Random
from typing import Final

from ottla.metadata.image.features import (
    ELR_VERSION,
    METADATA_VERSION_MAX,
    metadata_version_needed,
)
from ottla.simulation.history.history import IDEMPOTENT, PIPELINED
from ottla.simulation.plans.plan import Plan

# Housekeeping begins soon after a start, else a short run sees none of it.
HOUSEKEEPING: Final = {
    "log.initial.task.delay.ms": "100",
    "log.flush.offset.checkpoint.interval.ms": "200",
}
ELR_SINCE: Final = metadata_version_needed(ELR_VERSION, 1)
RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def with_additions(plan: Plan) -> Plan:
    for add in (
        _with_bit_rot,
        _with_hostile_clients,
        _with_keyed_producers,
        _with_racks,
        _with_unclean_elections,
        _with_feature_changes,
    ):
        plan = add(plan)
    return plan


def _with_bit_rot(plan: Plan) -> Plan:
    """Logs are sealed and checkpointed often, so that there are segments to be damaged.

    Only where every other replica stays as it is: a log directory that failed, or a blackout of
    disks that are not synced, may leave the damaged replica as the only one.
    """
    chance = Random(f"bit rot/{plan.brokers}/{plan.seed}")
    rate, is_drawn = chance.choice((0.5, 2.0)), chance.random() < 0.2
    if not is_drawn or plan.is_alone or plan.has_sick_disk:
        return plan
    return replace(
        plan,
        rates=replace(plan.rates, bit_rot=rate),
        replicas_min=2,  # A reassignment does not leave the damaged replica alone.
        settings=plan.settings | HOUSEKEEPING,
        topic_configs=plan.topic_configs | {"internal.segment.bytes": "4096"},
    )


def _with_feature_changes(plan: Plan) -> Plan:
    """Some clusters begin with an older metadata.version, and a few without the ELR.

    Without the ELR a broker that lost power, and records, stays in the ISR.
    """
    chance = Random(f"features/{plan.brokers}/{plan.seed}")
    rate, is_drawn = chance.choice((0.5, 2.0)), chance.random() < 0.25
    version = chance.choice((METADATA_VERSION_MAX, 29, 25, 23, 20))
    if not is_drawn:
        return plan
    if plan.is_alone:
        version = METADATA_VERSION_MAX
    elif plan.rates.power_loss and not plan.is_synced:
        version = max(version, ELR_SINCE)
    rates = replace(plan.rates, feature_change=rate)
    return replace(plan, rates=rates, metadata_version=version)


def _with_hostile_clients(plan: Plan) -> Plan:
    chance = Random(f"hostile/{plan.brokers}/{plan.seed}")
    count, is_drawn = chance.randint(1, 3), chance.random() < 0.2
    return replace(plan, hostile_clients=count) if is_drawn else plan


def _with_keyed_producers(plan: Plan) -> Plan:
    """The cleaner runs often. A power loss that may take anything leaves nothing to be checked."""
    chance = Random(f"keyed/{plan.brokers}/{plan.seed}")
    count, is_drawn = chance.randint(1, 2), chance.random() < 0.2
    if not is_drawn or plan.may_lose_acknowledged:
        return plan
    settings = plan.settings | {"log.cleaner.backoff.ms": "100"}
    return replace(plan, keyed_producers=count, settings=settings)


def _with_racks(plan: Plan) -> Plan:
    is_drawn = Random(f"racks/{plan.brokers}/{plan.seed}").random() < 0.25
    return in_racks(plan) if is_drawn and not plan.is_alone else plan


def in_racks(plan: Plan) -> Plan:
    """Consumers read the replica in their rack, which may be a follower."""
    settings = plan.settings | {"replica.selector.class": RACK_AWARE}
    return replace(plan, is_racked=True, settings=settings)


def _with_unclean_elections(plan: Plan) -> Plan:
    is_drawn = Random(f"unclean/{plan.brokers}/{plan.seed}").random() < 0.2
    is_possible = not plan.is_alone and not plan.rates.bit_rot
    return with_unclean_elections(plan) if is_drawn and is_possible else plan


def with_unclean_elections(plan: Plan) -> Plan:
    """Brokers are killed and fenced often, and one replica in sync is enough to write.

    Where records are lost, sequences are, too: only Ottla's own producer begins again.
    """
    settings = {
        "unclean.leader.election.interval.ms": "500",
        "broker.session.timeout.ms": "3000",
        "replica.lag.time.max.ms": "1500",
    }
    rates = replace(
        plan.rates,
        unclean_change=2.0,
        kill=max(plan.rates.kill, 1.0),
        partition=max(plan.rates.partition, 0.5),
    )
    return replace(
        plan,
        rates=rates,
        producers=tuple(IDEMPOTENT if one is PIPELINED else one for one in plan.producers),
        settings=plan.settings | settings,
        topic_configs=plan.topic_configs | {"min.insync.replicas": "1"},
    )
