"""Valid messages, broken in every way that a peer can think of: only ProtocolError may come out.

Runs for OTTLA_FUZZ_SECONDS (15 unless set) from the seed OTTLA_FUZZ_SEED (random unless set). A
failure names its seed, message, version and bytes.
"""

# ruff: noqa: ANN401  What is said here holds for messages of any class.

import os
import random
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple, get_args

import pytest

from ottla.model.errors import ProtocolError
from ottla.protocol import control_records
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import decode_from, encode
from ottla.protocol.control_records import ControlType, decode_control, encode_control
from ottla.protocol.header import RequestHeader, decode_request_header, encode_request_header
from ottla.protocol.metadata_records import MetadataRecord, decode_record, encode_record
from ottla.simulation.clients.breakage import build, mutate
from tests.unit.protocol.strategies import api_classes, module_classes

SECONDS: Final = float(os.environ.get("OTTLA_FUZZ_SECONDS", "15"))
SEED: Final = int(os.environ.get("OTTLA_FUZZ_SEED", str(random.SystemRandom().getrandbits(32))))
DECODE_SECONDS_MAX: Final = 2.0


class Target(NamedTuple):
    name: str
    make: Callable[[random.Random], bytes]
    read: Callable[[bytes], object]
    write: Callable[[Any], bytes] | None = None  # What was read must be writable again.


@pytest.mark.timeout(SECONDS + 60)
def test_nothing_but_a_protocol_error_escapes_a_decoder() -> None:
    rng = random.Random(SEED)
    targets = [*_api_targets(), *_record_targets(), *_control_targets(), *_header_targets()]
    assert len(targets) > 500
    end = time.monotonic() + SECONDS
    rounds = 0
    while time.monotonic() < end or rounds < len(targets):
        target = targets[rounds] if rounds < len(targets) else rng.choice(targets)
        rounds += 1
        data = target.make(rng)
        for _ in range(8):
            data = mutate(data, rng)
            _attack(target, data)


def _attack(target: Target, data: bytes) -> None:
    started = time.process_time()
    try:
        message = target.read(data)
        if target.write is not None:
            again = target.write(message)
            assert target.write(target.read(again)) == again, "what is read can be written"
    except ProtocolError:
        pass
    except BaseException as error:
        error.add_note(f"seed {SEED}: {target.name} of {data.hex()}")
        raise
    spent = time.process_time() - started
    assert spent < DECODE_SECONDS_MAX, f"seed {SEED}: {spent} s for {target.name}: {data.hex()}"


def _api_targets() -> list[Target]:
    return [
        _message_target(name, cls, version)
        for name, cls in api_classes()
        for version in cls.VERSIONS  # type: ignore[attr-defined]
    ]


def _message_target(name: str, cls: type, version: int) -> Target:
    def read(data: bytes) -> object:
        message: object
        message, end = decode_from(cls, data, 0, version)
        assert end <= len(data), "nothing is read from beyond the end"
        return message

    return Target(
        f"{name} v{version}",
        lambda rng: encode(build(cls, version, rng), version),
        read,
        lambda message: encode(message, version),
    )


def _record_targets() -> list[Target]:
    def make(cls: Any, rng: random.Random) -> bytes:
        version = rng.choice(cls.VERSIONS)
        return encode_record(build(cls, version, rng), version)

    return [
        Target(cls.__name__, lambda rng, cls=cls: make(cls, rng), decode_record)  # type: ignore[misc]
        for cls in get_args(MetadataRecord)
    ]


def _control_targets() -> list[Target]:
    def make(kind: ControlType, cls: Any, rng: random.Random) -> bytes:
        message = build(cls, 0, rng)
        message.version = 0
        return encode_control(kind, message)[1]

    kinds = list(ControlType)[2:]
    classes = [cls for name, cls in module_classes(control_records).items() if name[0] != "E"]
    return [
        Target(
            cls.__name__,
            lambda rng, kind=kind, cls=cls: make(kind, cls, rng),  # type: ignore[misc]
            lambda data, kind=kind: decode_control(b"\0\0\0" + bytes([kind]), data),  # type: ignore[misc]
        )
        for kind, cls in zip(kinds, classes, strict=True)
    ]


def _header_targets() -> list[Target]:
    def make(rng: random.Random) -> bytes:
        key = rng.choice(list(ApiKey))
        return encode_request_header(RequestHeader(key, rng.randrange(16), 7, "client"))

    return [Target("request header", make, decode_request_header)] * 10
