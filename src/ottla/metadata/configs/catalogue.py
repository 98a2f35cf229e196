"""Lookup of configs: by name, by scope, by the nearest spelling.

A topic config takes its default from a broker config; `TOPIC_SYNONYMS` names it.
"""

from collections.abc import Iterable
from typing import Final

from ottla.metadata.configs import (
    groups,
    logs,
    metrics,
    network,
    own,
    quorum,
    replication,
    security,
    share,
    tiering,
    tls,
    topic,
    transactions,
)
from ottla.metadata.configs.definition import Definition, Service

BROKER_TABLES: Final = (
    network,
    logs,
    replication,
    quorum,
    groups,
    share,
    transactions,
    tiering,
    metrics,
    tls,
    security,
    own,
)
BROKER_CONFIGS: Final[dict[str, Definition]] = {
    definition.name: definition for table in BROKER_TABLES for definition in table.DEFINITIONS
}
TOPIC_CONFIGS: Final[dict[str, Definition]] = {
    definition.name: definition for definition in topic.DEFINITIONS
}

# Prefixes of settings of components that are not built.
NOT_BUILT_PREFIXES: Final = ("listener.name.", "rsm.config.", "rlmm.config.", "config.providers.")
# Security settings that only Kafka's authorizer reads, so Kafka's own tables lack them.
NOT_BUILT_NAMES: Final = frozenset({"super.users", "allow.everyone.if.no.acl.found"})

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS

# Several broker configs for one value: the first one set wins. The number converts it to ms.
BROKER_SYNONYMS: Final[tuple[tuple[tuple[str, int], ...], ...]] = (
    (("log.roll.ms", 1), ("log.roll.hours", HOUR_MS)),
    (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", HOUR_MS)),
    (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    (
        ("log.retention.ms", 1),
        ("log.retention.minutes", MINUTE_MS),
        ("log.retention.hours", HOUR_MS),
    ),
)

# The broker config that provides a topic config's default; its synonyms follow it.
TOPIC_SYNONYMS: Final[dict[str, str]] = {
    "cleanup.policy": "log.cleanup.policy",
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.type": "compression.type",
    "compression.zstd.level": "compression.zstd.level",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "index.interval.bytes": "log.index.interval.bytes",
    "local.retention.bytes": "log.local.retention.bytes",
    "local.retention.ms": "log.local.retention.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "min.insync.replicas": "min.insync.replicas",
    "preallocate": "log.preallocate",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "segment.bytes": "log.segment.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
    "segment.jitter.ms": "log.roll.jitter.ms",
    "segment.ms": "log.roll.ms",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}


def synonyms_of(broker_config: str) -> tuple[str, ...]:
    """The broker configs for the same value, in order of precedence."""
    for group in BROKER_SYNONYMS:
        names = tuple(name for name, _ in group)
        if broker_config in names:
            # Kafka lists the scheduler's interval only as a fallback, never the other way round.
            return names if broker_config != "log.flush.scheduler.interval.ms" else (broker_config,)
    return (broker_config,)


def is_not_built(name: str) -> bool:
    """Whether `name` is Kafka's and must be refused because it would have no effect here."""
    definition = BROKER_CONFIGS.get(name)
    if definition is not None:
        return definition.service is Service.NOT_BUILT
    return name in NOT_BUILT_NAMES or name.startswith(NOT_BUILT_PREFIXES)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name closest in spelling to `name`, or None."""
    from difflib import get_close_matches  # Slow to import, and needed only for a misspelling.

    matches = get_close_matches(name, known, n=1, cutoff=0.7)
    return matches[0] if matches else None
