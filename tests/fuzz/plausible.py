"""Requests of any API that look as if somebody meant them: their names, ids and batches exist.

What a field gets is decided by its name and kind, so that an API that is added later is asked, too.
"""

# ruff: noqa: ANN401  What is said here holds for messages of any class.

import random
from typing import Any, Final

from ottla.metadata.configs.catalogue import BROKER_CONFIGS, TOPIC_CONFIGS
from ottla.protocol.schema import Field, fields_of
from ottla.simulation.clients.breakage import BOUNDS
from tests.unit.broker.requests import batch
from tests.unit.broker.serving import World

TOPICS: Final = ("t", "u")
NAMES: Final = (*TOPICS * 3, "new", "", "a/b", "v.x", "v_x", "x" * 250, "__cluster_metadata")
CONFIGS: Final = (*TOPIC_CONFIGS, *BROKER_CONFIGS)
VALUES: Final = ("", "-1", "1", "1000", "true", "delete", "compact", "zstd", "LogAppendTime", "x")

# By the end of a field's name; the first that fits counts.
NUMBERS: Final[tuple[tuple[str, tuple[int, ...]], ...]] = (
    ("wait_ms", (0, 10, 500, 30_000, -1)),
    ("timeout_ms", (0, 10, 500, 30_000, -1)),
    ("partition_index", (0, 0, 0, 1, 7, -1)),
    ("partition", (0, 0, 0, 1, 7, -1)),
    ("index", (0, 0, 0, 1, 7, -1)),
    ("count", (1, 2, 3, 0, -1)),
    ("num_partitions", (1, 2, 3, -1, 0)),
    ("replication_factor", (1, 1, -1, 2)),
    ("acks", (-1, -1, 1, 0, 5)),
    ("session_epoch", (0, 0, 1, 2, 3, -1)),
    ("resource_type", (2, 2, 4, 4, 8, 16, 32, 0)),
    ("config_operation", (0, 0, 1, 2, 3, 9)),
    ("replica_id", (-1, -1, -1, 1, 2)),
    ("bytes", (0, 1, 100, 1 << 20, (1 << 31) - 1, -1)),
    ("offset", (0, 0, 1, 2, 5, -1, -2, 10**9)),
    ("epoch", (-1, -1, 0, 0, 1, 9)),
)


def build(cls: type, version: int, rng: random.Random, world: World) -> Any:
    message = cls()
    for field in fields_of(cls):
        if field.is_in(version):
            setattr(message, field.name, _value(field, version, rng, world))
    return message


def _value(field: Field, version: int, rng: random.Random, world: World) -> Any:
    rarely_null = 0.9 if field.name == "transactional_id" else 0.15
    if field.is_nullable_in(version) and rng.random() < rarely_null:
        return None
    if field.kind == "struct":
        return build(field.of, version, rng, world)
    if field.kind != "array":
        return _plain(field.kind, field.name, rng, world)
    count = rng.choice((0, 1, 1, 1, 2, 3))
    if isinstance(field.of, type):
        return [build(field.of, version, rng, world) for _ in range(count)]
    return [_plain(field.of, field.name.removesuffix("s"), rng, world) for _ in range(count)]


def _plain(kind: str, name: str, rng: random.Random, world: World) -> Any:
    if kind in BOUNDS:
        return _number(kind, name, rng, world)
    if kind == "string":
        return _text(name, rng)
    if kind == "records":
        return _records(rng, world)
    if kind == "uuid":
        ids = [topic.id for topic in world.broker.image.topics_by_name.values()]
        return rng.choice([*ids * 3, bytes(16), b"?" * 16])
    return {"bool": rng.random() < 0.5, "float64": 1.5}.get(kind, rng.randbytes(5))


def _number(kind: str, name: str, rng: random.Random, world: World) -> int:
    if name == "session_id":
        return rng.choice([0, *world.broker.fetch_sessions._sessions])
    if "timestamp" in name:
        return rng.choice((-1, -2, -3, -4, -5, -6, -7, 0, world.now, world.now - 10))
    for end, numbers in NUMBERS:
        if name.endswith(end):
            return rng.choice(numbers)
    low, high = BOUNDS[kind]
    return rng.choice((0, 0, 1, 2, max(low, -1), high))


def _text(name: str, rng: random.Random) -> str:
    if name == "config_name" or (name == "name" and rng.random() < 0.1):
        return rng.choice(CONFIGS)
    if name == "resource_name":
        return rng.choice((*TOPICS, "1", "2", ""))
    if name == "value":
        return rng.choice(VALUES)
    return rng.choice(NAMES)


def _records(rng: random.Random, world: World) -> bytes:
    if rng.random() < 0.2:
        return rng.randbytes(rng.randrange(150))
    options: dict[str, Any] = {"codec": rng.choice((0, 0, 0, 1, 2, 3, 4))}
    if rng.random() < 0.4:
        options |= {"producer_id": rng.randrange(3), "producer_epoch": rng.randrange(2)}
        options |= {"base_sequence": rng.randrange(4)}
    if rng.random() < 0.1:
        options[rng.choice(("is_transactional", "is_control"))] = True
    at = world.now + rng.choice((0, 0, 0, -1_000_000, 100_000_000))
    values = [b"v" * rng.randrange(200) for _ in range(rng.randrange(1, 4))]
    data = batch(*values, at=at, **options)
    if rng.random() < 0.1:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data * 2 if rng.random() < 0.05 else data)
