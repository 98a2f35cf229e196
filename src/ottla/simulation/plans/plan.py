"""A plan of a run: its brokers, its clients, and how often which fault happens.

`swarm.py` makes the plan of a seed. To find the cause of a failure, faults and clients are left
out (`without`) for as long as the run still fails.
"""

from dataclasses import dataclass, fields, replace
from typing import Final

from ottla.broker.partitions.hosting import AT_ONCE_MAX
from ottla.metadata.image.features import (
    ELR_VERSION,
    GROUP_VERSION,
    METADATA_VERSION_MAX,
    METADATA_VERSIONS,
    metadata_version_needed,
)
from ottla.simulation.history.history import Guarantee
from ottla.simulation.plans.group_plan import GroupPlan

CLIENTS: Final = ("producers", "consumers", "groups", "hostile", "keyed")
# Faults that only delay messages: the receiver may act on a request after its sender gave up.
DELAYS: Final = ("clog", "pause", "partition", "one_way", "lonely_client", "slow_link")


@dataclass(frozen=True, slots=True)
class Rates:
    """Events per virtual second, each to one node, one link or all of them."""

    reset: float = 0.0
    clog: float = 0.0
    kill: float = 0.0
    power_loss: float = 0.0
    blackout: float = 0.0  # All nodes lose power at once.
    disk_full: float = 0.0
    disk_error: float = 0.0
    clean_restart: float = 0.0
    clock_jump: float = 0.0
    pause: float = 0.0
    partition: float = 0.0  # The nodes are split into two parts, in both directions.
    one_way: float = 0.0  # One node's messages do not reach another.
    lonely_client: float = 0.0  # A client is cut off from a node.
    slow_link: float = 0.0
    bit_rot: float = 0.0  # A bit of a sealed segment changes on one replica.
    # Administration.
    topic_deletion: float = 0.0
    record_deletion: float = 0.0
    config_change: float = 0.0
    reassignment: float = 0.0
    election: float = 0.0
    voter_change: float = 0.0
    # Administration that changes what is safe.
    min_isr_change: float = 0.0
    partition_growth: float = 0.0
    elr_change: float = 0.0
    feature_change: float = 0.0  # Of metadata.version and group.version.
    unclean_change: float = 0.0  # Unclean election is switched on or off for a topic.


ADMINISTRATION: Final = frozenset(
    {
        "topic_deletion",
        "record_deletion",
        "config_change",
        "reassignment",
        "election",
        "voter_change",
        "min_isr_change",
        "partition_growth",
        "elr_change",
        "feature_change",
        "unclean_change",
    }
)


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    brokers: int
    seconds: float  # Of virtual time with faults; then everything heals.
    topics: int
    partitions: int
    producers: tuple[Guarantee, ...]
    consumers: int
    records_per_second: float  # Per producer.
    value_bytes_max: int
    is_synced: bool  # Whether brokers sync before they acknowledge.
    log_dirs: int  # Per node.
    rates: Rates
    settings: dict[str, str]
    topic_configs: dict[str, str]
    delay_ns_mean: int
    groups: tuple[GroupPlan, ...] = ()
    session_consumers: int = 0  # So many of the consumers use incremental fetch sessions.
    old_consumers: int = 0  # So many of the others send no leader epochs.
    is_racked: bool = False  # Each node is in a rack; consumers without sessions are, too.
    hosted_at_once: int = AT_ONCE_MAX  # New logs of one change; workers make the others.
    keyed_producers: int = 0  # Producers of a compacted topic.
    hostile_clients: int = 0  # Clients that send whatever may harm a broker.
    disk_factor: int = 1  # How slow disks are.
    metadata_version: int = METADATA_VERSION_MAX  # With which a cluster is formatted.
    replicas_min: int = 2  # Reassignments leave a partition at least so many.
    is_restarted: bool = True  # In the end, cleanly, all nodes one after the other.

    @property
    def is_alone(self) -> bool:
        return self.brokers == 1

    @property
    def release_version(self) -> str:
        return METADATA_VERSIONS[self.metadata_version]

    @property
    def features(self) -> dict[str, int]:
        """Levels of a new cluster, without metadata.version. A single node has no ELR."""
        names = [GROUP_VERSION] if self.is_alone else [GROUP_VERSION, ELR_VERSION]
        return {
            name: 1 for name in names if metadata_version_needed(name, 1) <= self.metadata_version
        }

    @property
    def has_sick_disk(self) -> bool:
        return bool(self.rates.disk_full or self.rates.disk_error)

    @property
    def is_known_everywhere(self) -> bool:
        """Whether every node knows a topic that was confirmed: each reads the metadata log."""
        return self.is_alone

    @property
    def may_lose_acknowledged(self) -> bool:
        """A single broker that does not sync loses acknowledged records with the power.

        In a cluster no node loses power whose records no other node keeps.
        """
        return self.is_alone and bool(self.rates.power_loss) and not self.is_synced

    @property
    def is_delayed(self) -> bool:
        """Requests may arrive after their sender has given up, and asked another node."""
        return any(getattr(self.rates, name) for name in DELAYS)

    @property
    def retention_bytes(self) -> int | None:
        kept = self.topic_configs.get("retention.bytes")
        return None if kept is None else int(kept)

    @property
    def is_trimmed(self) -> bool:
        return bool(self.rates.record_deletion) or self.retention_bytes is not None

    def happening(self) -> dict[str, float]:
        rates = {field.name: getattr(self.rates, field.name) for field in fields(self.rates)}
        return {name: rate for name, rate in rates.items() if rate}

    def __str__(self) -> str:
        rates = " ".join(f"{name}={rate:g}" for name, rate in self.happening().items())
        producers = ", ".join(guarantee.name for guarantee in self.producers)
        groups = ", ".join(str(group) for group in self.groups) or "none"
        return (
            f"{self.brokers} nodes, {self.seconds} s; {self.topics}x{self.partitions} partitions "
            f"in {self.log_dirs} dirs; producers: {producers} with {self.records_per_second:g} "
            f"records/s; {self.consumers} consumers{' in racks' if self.is_racked else ''}; "
            f"{self.delay_ns_mean / 1e6:g} ms links; "
            f"groups: {groups}; {self.keyed_producers} keyed; {self.hostile_clients} hostile; "
            f"{'synced' if self.is_synced else 'not synced'}; {rates or 'no faults'}"
        )


def without(plan: Plan, names: tuple[str, ...]) -> Plan:
    """The same run with some kinds of faults, or of clients, left out. KeyError: no such kind."""
    rates = {field.name for field in fields(plan.rates)}
    for name in names:
        if name in rates:
            plan = replace(plan, rates=replace(plan.rates, **{name: 0.0}))
        elif name == "groups":
            plan = replace(plan, groups=())
        elif name == "hostile":
            plan = replace(plan, hostile_clients=0)
        elif name == "keyed":
            plan = replace(plan, keyed_producers=0)
        elif name == "producers":
            plan = replace(plan, producers=plan.producers[:1])
        elif name == "consumers":
            plan = replace(plan, consumers=0, session_consumers=0, old_consumers=0)
        else:
            raise KeyError(name)
    return plan
