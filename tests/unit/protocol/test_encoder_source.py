"""Encoders follow the schema, and write tagged fields only if they differ from the default."""

from typing import ClassVar

import pytest

from ottla.model.errors import Refusal
from ottla.protocol.codec import decode, encode
from ottla.protocol.encoder_source import STEP, compile_encoder, compile_stepping_encoder
from ottla.protocol.schema import (
    array,
    binary,
    boolean,
    float64,
    int8,
    int32,
    message,
    string,
    struct,
    uint32,
    uuid,
)


@message
class Point:
    x: int = int32()
    y: int = int32(-1)


@message
class Everything:
    VERSIONS: ClassVar = range(0, 3)
    FLEXIBLE_SINCE: ClassVar = 1

    first: Point = struct(Point)
    second: Point = struct(Point)
    maybe: Point | None = struct(Point, default=None, nullable=0)
    points: list[Point] = array(Point)
    ids: list[bytes] = array(uuid)
    names: list[str] | None = array(string, nullable=0)
    size: int = uint32()
    ratio: float = float64()
    flag: bool = boolean()
    tagged: Point = struct(Point, since=1, tag=1)
    early: int = int8(3, since=1, tag=0)
    blob: bytes | None = binary(None, since=2, nullable=2, tag=2)
    gone: list[int] = array(int32, until=0)
    quiet: list[int] = array(int32, until=0, ignorable=True)


def test_structs_in_structs_are_written_in_place() -> None:
    everything = Everything(Point(1, 2), Point(3, 4), Point(5, 6), [Point(7, 8)])
    data = encode(everything, 0)
    numbers = [int.from_bytes(data[at : at + 4], "big") for at in (0, 4, 8, 12)]
    assert numbers == [1, 2, 3, 4]
    assert data[16:25] == b"\x01" + b"\0\0\0\x05" + b"\0\0\0\x06"
    assert decode(Everything, data, 0) == everything


@pytest.mark.parametrize("version", Everything.VERSIONS)
def test_every_kind_of_field_round_trips(version: int) -> None:
    everything = Everything(
        points=[Point(1)], ids=[b"a" * 16, b"b" * 16], names=["é", ""], size=(1 << 32) - 1,
        ratio=0.1, flag=True,
    )  # fmt: skip
    assert decode(Everything, encode(everything, version), version) == everything
    everything.names, everything.maybe = None, Point(9, 9)
    assert decode(Everything, encode(everything, version), version) == everything


def test_tagged_fields_with_their_defaults_are_left_out_and_others_go_by_tag() -> None:
    plain = encode(Everything(), 2)
    assert plain.endswith(b"\x00")
    full = encode(Everything(tagged=Point(1), early=5, blob=b"bb"), 2)
    assert full.startswith(plain[:-1])
    assert full[len(plain) - 1 :] == (
        b"\x03\x00\x01\x05\x01\x09\x00\x00\x00\x01\xff\xff\xff\xff\x00\x02\x03\x03bb"
    )


def test_a_field_missing_in_the_version_is_refused_or_left_out() -> None:
    with pytest.raises(Refusal, match=r"Everything\.early"):
        encode(Everything(early=4), 0)
    with pytest.raises(Refusal, match=r"Everything\.tagged"):
        encode(Everything(tagged=Point(1)), 0)
    with pytest.raises(Refusal, match=r"Everything\.blob"):
        encode(Everything(blob=b""), 1)
    with pytest.raises(Refusal, match=r"Everything\.gone"):
        encode(Everything(gone=[1]), 1)
    assert encode(Everything(quiet=[1]), 1) == encode(Everything(), 1)


def test_an_encoder_is_one_function_that_appends() -> None:
    out = bytearray(b"x")
    compile_encoder(Point, 0, flexible=False)(Point(1, 2), out)
    assert out == b"x\0\0\0\x01\0\0\0\x02"


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_stepping_encoder_writes_the_same_with_pauses(version: int) -> None:
    points = [Point(n, -n) for n in range(3 * STEP)]
    everything = Everything(points=points, names=["a"], size=7, tagged=Point())
    out = bytearray()
    sizes = [
        len(out)
        for _ in compile_stepping_encoder(Everything, version, version >= 1)(everything, out)
    ]
    assert len(sizes) == 3
    assert 0 < sizes[0] < sizes[1] < sizes[2]
    assert bytes(out) == encode(everything, version)
    assert list(compile_stepping_encoder(Point, 0, False)(Point(), out)) == []
