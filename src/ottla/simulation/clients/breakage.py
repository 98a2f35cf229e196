"""Messages of any class with random content, and the ways in which bytes can be broken."""

# ruff: noqa: ANN401  What is said here holds for messages of any class.

import random
from typing import Any, Final

from ottla.protocol.schema import Field, fields_of

BOUNDS: Final = {
    "int8": (-(1 << 7), (1 << 7) - 1),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "uint16": (0, (1 << 16) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "uint32": (0, (1 << 32) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
}
# What lengths, counts and tags look like when someone lies about them.
LIES: Final = [
    b"\x00", b"\x01", b"\x7f", b"\x80", b"\xff", b"\x7f\xff", b"\x80\x00", b"\xff\xff",
    b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\xff\xff\xff\xff", b"\x00\x00\x00\x00",
    b"\x00\x10\x00\x00", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\xff\x01", b"\x80" * 9,
    b"\x80\xda\xc4\x09", b"\x80\x80\x08",
]  # fmt: skip


def build(cls: type, version: int, rng: random.Random) -> Any:
    """A message that can be encoded in `version`, with values of any size."""
    message = cls()
    for field in fields_of(cls):
        if field.is_in(version) and rng.random() < 0.8:
            setattr(message, field.name, _value(field, version, rng))
    return message


def _value(field: Field, version: int, rng: random.Random) -> Any:
    if field.is_nullable_in(version) and rng.random() < 0.2:
        return None
    if field.kind == "struct":
        return build(field.of, version, rng)
    if field.kind != "array":
        return _plain(field.kind, rng)
    if isinstance(field.of, type):
        return [build(field.of, version, rng) for _ in range(rng.randrange(4))]
    return [_plain(field.of, rng) for _ in range(rng.randrange(4))]


def _plain(kind: str, rng: random.Random) -> Any:
    if kind in BOUNDS:
        low, high = BOUNDS[kind]
        return rng.choice([low, 0, 1, high, rng.randint(low, high)])
    if kind == "bool":
        return rng.random() < 0.5
    if kind == "float64":
        return rng.random()
    if kind == "uuid":
        return rng.randbytes(16)
    if kind == "string":
        return rng.choice(["", "orders", "é", "x" * 130])
    return rng.randbytes(rng.choice([0, 3, 70, 200]))


def mutate(data: bytes, rng: random.Random) -> bytes:
    """`data` with one change; what was empty gets a byte."""
    broken = bytearray(data or b"\0")
    at = rng.randrange(len(broken))
    match rng.randrange(7):
        case 0:
            broken[at] ^= 1 << rng.randrange(8)
        case 1:
            del broken[at:]
        case 2:
            lie = rng.choice(LIES)
            broken[at : at + len(lie)] = lie
        case 3:
            broken[at:at] = rng.choice(LIES)
        case 4:
            del broken[at : at + rng.randrange(1, 9)]
        case 5:
            broken[at] = rng.randrange(256)
        case _:
            piece = broken[at : at + rng.randrange(1, 33)]
            broken[at:at] = piece * rng.randrange(1, 5)
    return bytes(broken)
