"""Settings of a consumer: delivery guarantee, retries, timeouts."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

RETRIES_DEFAULT = 3
MAX_POLL_INTERVAL_MS_DEFAULT = 300_000
FACTORS_MAX = 64  # Beyond that every backoff is the longest.

# Connection settings that the consumer shares with the dead letter producer.
SHARED_PREFIXES = (
    *("bootstrap.", "broker.", "client.id", "sasl.", "security.", "socket.", "ssl."),
    "oauth_cb",
)
DECIDED = {
    "bootstrap.servers": "give bootstrap_servers",
    "group.id": "give group",
    "enable.auto.commit": "what is committed, and when, is what `delivery` decides",
    "enable.auto.offset.store": "what is committed, and when, is what `delivery` decides",
    "on_commit": "the consumer itself listens to it",
}


class Delivery(StrEnum):
    AT_LEAST_ONCE = "at-least-once"  # Committed after handling: a crash repeats records.
    AT_MOST_ONCE = "at-most-once"  # Committed before handling: a crash loses records.


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff between retries of a record, with jitter."""

    first_s: float = 0.5
    longest_s: float = 30.0
    factor: float = 2.0

    def __post_init__(self) -> None:
        if not 0 <= self.first_s <= self.longest_s or self.factor < 1:
            raise ValueError("a backoff needs 0 <= first_s <= longest_s and a factor of at least 1")

    def wait_s(self, failures: int, chance: float) -> float:
        """Seconds to wait after `failures`; `chance` between 0 and 1 removes up to half of it."""
        assert failures > 0, "there is a wait only after a failure"
        growth = math.pow(self.factor, min(failures - 1, FACTORS_MAX))
        return min(self.first_s * growth, self.longest_s) * (1 - chance / 2)


@dataclass(frozen=True, slots=True)
class Settings:
    group: str
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    retries: int = RETRIES_DEFAULT
    backoff: Backoff = field(default_factory=Backoff)
    dead_letters: bool | str = True
    workers: int = 1
    finish_s: float = 30.0  # How long a record in progress may take when its partition is revoked.
    commit_s: float = 1.0

    def __post_init__(self) -> None:
        if not self.group:
            raise ValueError("give the name of a group")
        if self.retries < 0:
            raise ValueError("retries cannot be negative")
        if self.workers < 1:
            raise ValueError("at least one worker is needed")

    @property
    def is_at_most_once(self) -> bool:
        return self.delivery is Delivery.AT_MOST_ONCE

    def dead_letter_topic(self, topic: str) -> str | None:
        """The dead letter topic for a topic; None if disabled."""
        if isinstance(self.dead_letters, str):
            return self.dead_letters
        return f"{topic}.dlq" if self.dead_letters else None


def consumer_config(bootstrap: str, group: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """The client's config; names may be written with underscores instead of dots."""
    named = {name if "." in name else _dotted(name): value for name, value in config.items()}
    for name, why in DECIDED.items():
        if name in named:
            raise ValueError(f"{name} is not yours to set here: {why}")
    return {
        "auto.offset.reset": "earliest",  # A new group misses no record.
        "queued.min.messages": 10_000,  # A pause drops prefetched records,
        "fetch.queue.backoff.ms": 10,  # and a resume must not wait for a second.
        **named,
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
    }


def producer_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config for the producer of dead letters, from the consumer's."""
    shared = {name: value for name, value in config.items() if name.startswith(SHARED_PREFIXES)}
    return {
        **shared,
        "enable.idempotence": True,
        "linger.ms": 0,
        "message.timeout.ms": 60_000,
        "message.max.bytes": 1_000_000_000,  # The broker decides.
    }


def finish_s_max(settings: Settings, config: Mapping[str, Any]) -> float:
    """Time that a rebalance may wait for this member, well below the group's timeout."""
    interval_ms = int(config.get("max.poll.interval.ms", MAX_POLL_INTERVAL_MS_DEFAULT))
    return min(settings.finish_s, interval_ms / 2000)


def _dotted(name: str) -> str:
    # Callbacks keep confluent-kafka's names.
    return name if name.endswith("_cb") or name in ("on_commit", "logger") else _dots(name)


def _dots(name: str) -> str:
    return name.replace("_", ".")
