import pytest

from ottla.model.errors import Damaged
from ottla.model.types import TopicPartition
from ottla.simulation.world.disk import Crashed
from ottla.storage.checkpoint import (
    decode_clean_shutdown,
    decode_epochs,
    decode_offsets,
    decode_partition_metadata,
    encode_clean_shutdown,
    encode_epochs,
    encode_offsets,
    encode_partition_metadata,
    parse_properties,
    replace_file,
)
from ottla.storage.identity import MetaProperties
from tests.unit.storage.making import make_disk

TOPIC_ID = bytes(range(16))


def test_offsets_are_written_as_kafka_writes_them() -> None:
    offsets = {TopicPartition("b", 0): 7, TopicPartition("a-b.c", 12): 2**40}
    content = encode_offsets(offsets)
    assert content == b"0\n2\na-b.c 12 1099511627776\nb 0 7\n"
    assert decode_offsets("x", content) == offsets


def test_epochs_are_written_as_kafka_writes_them() -> None:
    content = encode_epochs([(0, 0), (3, 99)])
    assert content == b"0\n2\n0 0\n3 99\n"
    assert decode_epochs("x", content) == [(0, 0), (3, 99)]


@pytest.mark.parametrize("content", [b"", b"0\n"])
def test_a_file_that_kafka_has_only_created_is_empty(content: bytes) -> None:
    assert decode_offsets("x", content) == {}


@pytest.mark.parametrize(
    "content", [b"1\n0\n", b"0\n2\na 0 1\n", b"0\n1\na 0\n", b"0\n1\na 0 x\n", b"0\n1\na b 1\n"]
)
def test_a_checkpoint_that_does_not_add_up_is_damaged(content: bytes) -> None:
    with pytest.raises(Damaged):
        decode_offsets("x", content)


def test_partition_metadata_round_trips() -> None:
    content = encode_partition_metadata(TOPIC_ID)
    assert content == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert decode_partition_metadata("x", content) == TOPIC_ID
    with pytest.raises(Damaged):
        decode_partition_metadata("x", b"")


def test_the_clean_shutdown_file_holds_the_broker_epoch() -> None:
    assert encode_clean_shutdown(42) == b'{"version":0,"brokerEpoch":42}'
    assert decode_clean_shutdown(encode_clean_shutdown(42)) == 42
    assert decode_clean_shutdown(b"") is None
    assert decode_clean_shutdown(b"[1]") is None


def test_meta_properties_are_read_as_kafka_writes_them() -> None:
    written = (
        b"#\n#Mon Nov 16 01:00:00 UTC 2026\ncluster.id=4L6g3nShT-eMCtK--X86sw\n"
        b"directory.id=AAECAwQFBgcICQoLDA0ODw\nnode.id=1\nversion=1\n"
    )
    meta = MetaProperties.decode("x", written)
    assert meta == MetaProperties("4L6g3nShT-eMCtK--X86sw", 1, TOPIC_ID)
    assert MetaProperties.decode("x", meta.encode()) == meta


@pytest.mark.parametrize(
    "content",
    [b"version=0\nbroker.id=1\n", b"version=1\nnode.id=1\n", b"version=1\ncluster.id=a\n"],
)
def test_meta_properties_of_another_kind_are_refused(content: bytes) -> None:
    with pytest.raises(Damaged):
        MetaProperties.decode("x", content)


def test_properties_skip_comments_and_unescape_colons() -> None:
    assert parse_properties("# c\n! d\n a = b\\:c \n\n") == {"a": "b:c"}


@pytest.mark.parametrize("seed", range(30))
def test_a_file_is_replaced_wholly_or_not_at_all(seed: int) -> None:
    disk = make_disk(seed)
    replace_file(disk, "/data/x", b"old" * 2000)
    disk.crash_at = disk.operations + 1 + seed % 5
    with pytest.raises(Crashed):
        replace_file(disk, "/data/x", b"new" * 2000)
    disk.cut_power()
    assert disk.read("/data/x") in (b"old" * 2000, b"new" * 2000)


def test_a_replaced_file_survives_power() -> None:
    disk = make_disk()
    replace_file(disk, "/data/x", b"new")
    disk.cut_power()
    assert disk.read("/data/x") == b"new"
