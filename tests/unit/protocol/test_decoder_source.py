"""A decoder allocates nothing for mere claims of a peer."""

import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import pytest

from ottla.model.errors import ProtocolError
from ottla.protocol.codec import decode, encode
from ottla.protocol.decoder_source import (
    BYTES_PER_ELEMENT,
    ELEMENTS_MAX,
    compile_decoder,
    smallest_size,
)
from ottla.protocol.messages import (
    add_partitions_to_txn,
    api_versions,
    create_topics,
    fetch,
    metadata,
    produce,
)
from ottla.protocol.schema import STRING_BYTES_MAX, array, binary, int32, message, string, struct
from ottla.protocol.varint import append_uvarint

PEAK_BYTES_MAX = 64 << 20
SECONDS_MAX = 2.0


@message
class Leaf:
    items: list[int] = array(int32)


@message
class Tree:
    VERSIONS: ClassVar = range(0, 2)
    FLEXIBLE_SINCE: ClassVar = 1

    leaves: list[Leaf] = array(Leaf)
    names: list[str] = array(string)
    late: Leaf | None = struct(Leaf, default=None, since=1, nullable=1, tag=3)
    note: bytes = binary(since=1, tag=4)


@contextmanager
def bounded() -> Iterator[None]:
    """Bound the memory and CPU time of the block."""
    tracemalloc.start()
    started = time.process_time()
    try:
        yield
        spent = time.process_time() - started
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < PEAK_BYTES_MAX
    assert spent < SECONDS_MAX


def uvarint(value: int) -> bytes:
    out = bytearray()
    append_uvarint(out, value)
    return bytes(out)


@pytest.mark.parametrize(
    ("cls", "version", "data"),
    [
        (metadata.Request, 1, b"\x7f\xff\xff\xff" + bytes(1000)),
        (metadata.Request, 12, uvarint((1 << 32) - 1) + bytes(1000)),
        (create_topics.Request, 2, b"\x7f\xff\xff\xff" + bytes(1000)),
        (fetch.Request, 4, bytes(17) + b"\x7f\xff\xff\xff" + bytes(1000)),
        (api_versions.Request, 3, uvarint((1 << 32) - 1) + bytes(1000)),
        (api_versions.Request, 3, b"\x01\x01" + uvarint(20_000_000) + bytes(1000)),
        (produce.Request, 3, b"\xff\xff\0\0\0\0\0\0\0\0\0\x01\0\x01a\x7f\xff\xff\xff"),
        (Tree, 0, b"\0\0\0\x01\x7f\xff\xff\xff" + bytes(1000)),
        (Tree, 1, b"\x02" + uvarint((1 << 32) - 1) + bytes(1000)),
        (Tree, 1, b"\x01" + uvarint((1 << 32) - 1) + bytes(1000)),
    ],
)
def test_a_claim_of_billions_is_refused_before_anything_is_allocated(
    cls: type, version: int, data: bytes
) -> None:
    with bounded(), pytest.raises(ProtocolError):
        decode(cls, data, version)


def test_twenty_million_tagged_fields_are_refused_though_they_are_there() -> None:
    data = b"\x01\x01" + uvarint(20_000_000) + b"\x7f\x00" * 20_000_000
    with bounded(), pytest.raises(ProtocolError, match="20000000 tagged fields"):
        decode(api_versions.Request, data, 3)


def test_a_frame_full_of_the_smallest_elements_is_refused() -> None:
    data = uvarint(30_000_001) + b"\x01\x00" * 30_000_000  # Leaves without items or tags.
    with bounded(), pytest.raises(ProtocolError, match=r"Tree\.leaves claims 30000000 elements"):
        decode(Tree, data, 1)


def test_the_budget_holds_for_all_arrays_of_a_message_together() -> None:
    half = ELEMENTS_MAX // 2 + 1
    leaves = uvarint(half + 1) + b"\x01\x00" * half
    names = uvarint(half + 1) + b"\x01" * half
    assert len(decode(Tree, leaves + b"\x01\x00", 1).leaves) == half
    with pytest.raises(ProtocolError, match=r"Tree\.names claims"):
        decode(Tree, leaves + names + b"\x00", 1)
    assert len(decode(Tree, leaves + names + b"\x00", 1, elements_max=2 * half).names) == half


def test_the_budget_holds_for_arrays_inside_of_arrays() -> None:
    partitions = create_topics.CreatableReplicaAssignment(0, [1])
    topics = [create_topics.CreatableTopic("a", 1, 1, [partitions] * 9) for _ in range(10)]
    data = encode(create_topics.Request(topics), 5)
    assert len(decode(create_topics.Request, data, 5, elements_max=190).topics) == 10
    with pytest.raises(ProtocolError, match=r"assignments\.broker_ids claims 1 elements"):
        decode(create_topics.Request, data, 5, elements_max=189)


def test_plain_numbers_count_as_elements() -> None:
    data = b"\x02" + uvarint(100 + 1) + bytes(4 * 100) + b"\x00\x01\x00"
    assert len(decode(Tree, data, 1, elements_max=101).leaves[0].items) == 100
    with pytest.raises(ProtocolError, match=r"Tree\.leaves\.items claims 100 elements"):
        decode(Tree, data, 1, elements_max=100)


def test_tagged_fields_count_as_elements() -> None:
    leaf = b"\x01" + b"\x40" + b"\x7f\x00" * 64
    data = uvarint(10 + 1) + leaf * 10 + b"\x01\x00"
    assert len(decode(Tree, data, 1, elements_max=10 + 640).leaves) == 10
    with pytest.raises(ProtocolError, match=r"Tree\.leaves claims 64 elements"):
        decode(Tree, data, 1, elements_max=9 + 640)


def test_long_strings_count_as_several_elements() -> None:
    name = uvarint(8 * BYTES_PER_ELEMENT + 1) + b"\xff" * 8 * BYTES_PER_ELEMENT
    data = b"\x01" + uvarint(10 + 1) + name * 10 + b"\x00"
    assert len(decode(Tree, data, 1, elements_max=90).names) == 10
    with pytest.raises(ProtocolError, match=r"Tree\.names claims 8192 elements"):
        decode(Tree, data, 1, elements_max=89)


def test_a_tagged_field_must_fill_its_size() -> None:
    good = encode(Tree(late=Leaf([7])), 1)
    assert good == b"\x01\x01\x01\x03\x07\x01\x02\x00\x00\x00\x07\x00"
    for size in (6, 8):
        data = good[:4] + bytes([size]) + good[5:] + b"\x00"
        with pytest.raises(ProtocolError, match=r"Tree\.late does not fill"):
            decode(Tree, data, 1)


def test_unknown_tags_beside_known_ones_are_skipped() -> None:
    data = b"\x01\x01\x03" + b"\x00\x02zz" + b"\x03\x07\x01\x02\x00\x00\x00\x07\x00" + b"\x09\x00"
    assert decode(Tree, data, 1) == Tree(late=Leaf([7]))


def test_null_where_a_version_does_not_allow_it_is_refused() -> None:
    assert decode(metadata.Request, b"\xff\xff\xff\xff", 1).topics is None
    with pytest.raises(ProtocolError, match=r"Request\.topics is null"):
        decode(metadata.Request, b"\xff\xff\xff\xff", 0)


def test_the_smallest_size_counts_mandatory_bytes() -> None:
    assert smallest_size(Leaf, 0, flexible=False) == 4
    assert smallest_size(Leaf, 1, flexible=True) == 2
    assert smallest_size(Tree, 0, flexible=False) == 8
    assert smallest_size(Tree, 1, flexible=True) == 3
    assert smallest_size(produce.PartitionProduceData, 3, flexible=False) == 8
    assert smallest_size(add_partitions_to_txn.AddPartitionsToTxnTopic, 3, flexible=True) == 3


def test_a_decoder_is_one_function_that_returns_the_end() -> None:
    decoder = compile_decoder(Tree, 0, flexible=False)
    assert decoder(b"\0\0\0\0\0\0\0\0rest", 0, 0) == (Tree(), 8)


def test_compact_string_longer_than_a_classic_one_can_be_is_refused() -> None:
    longest = Tree(names=["x" * STRING_BYTES_MAX])
    assert decode(Tree, encode(longest, 1), 1) == longest
    size = STRING_BYTES_MAX + 1
    with pytest.raises(ProtocolError, match="names has 32768 bytes"):
        decode(Tree, uvarint(1) + uvarint(2) + uvarint(size + 1) + b"x" * size + b"\0", 1)
