import pytest

from ottla.metadata.image import batches
from ottla.model.errors import Damaged
from ottla.model.types import WallTime
from ottla.protocol.control_records import LeaderChangeMessage, LeaderChangeVoter
from ottla.protocol.metadata_records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from ottla.records.batch import Batch

NOW = WallTime(1_700_000_000_000)
TOPICS: list[MetadataRecord] = [TopicRecord(f"t{n}", bytes([n]) * 16) for n in range(5)]
LARGE = UserScramCredentialRecord("u", 1, bytes(3 << 20), b"s", b"k", 4096)


def made(*decisions: list[MetadataRecord], base_offset: int = 0) -> list[Batch]:
    values = [batches.encoded(records, 30) for records in decisions]
    return [Batch(b) for b in batches.data_batches(values, base_offset, 4, NOW)]


def read(made_batches: list[Batch]) -> list[tuple[int, MetadataRecord]]:
    return [pair for b in made_batches for pair in batches.read_metadata(b, "file", 0)]


def test_records_come_back_with_their_offsets() -> None:
    (batch,) = made(TOPICS, base_offset=7)
    assert (batch.base_offset, batch.last_offset, batch.leader_epoch) == (7, 11, 4)
    assert not batch.is_control
    assert read([batch]) == list(enumerate(TOPICS, 7))


def test_decisions_share_a_batch_while_they_fit() -> None:
    (batch,) = made(TOPICS[:2], TOPICS[2:])
    assert batch.count == 5


def test_a_decision_that_does_not_fit_beside_others_gets_its_own_batch() -> None:
    first, second = made([LARGE, LARGE], [LARGE, LARGE])
    assert (first.count, second.base_offset, second.count) == (2, 2, 2)


def test_a_decision_too_large_for_any_batch_is_a_transaction_of_several() -> None:
    records: list[MetadataRecord] = [LARGE] * 3
    wrapped, values = batches.encoded_decision(records, 30)
    assert values == batches.encoded(wrapped, 30)
    assert wrapped == [BeginTransactionRecord(), *records, EndTransactionRecord()]
    assert batches.encoded_decision(TOPICS, 30) == (TOPICS, batches.encoded(TOPICS, 30))
    divided = made(wrapped)
    assert len(divided) > 1
    assert read(divided) == list(enumerate(wrapped))


def test_a_control_batch_holds_the_quorums_records() -> None:
    change = LeaderChangeMessage(0, 1, [LeaderChangeVoter(1)], [LeaderChangeVoter(1)])
    batch = Batch(batches.control_batch([change], 9, 2, NOW))
    assert batch.is_control
    assert (batch.base_offset, batch.leader_epoch) == (9, 2)
    assert batches.read_controls(batch, "file", 0) == [change]


def test_every_batch_of_a_file_is_found_at_its_place() -> None:
    data = b"".join(bytes(b.data) for b in made([LARGE] * 2, [LARGE] * 2))
    found = list(batches.batches_in(data, "file", 100))
    assert [position for position, _ in found] == [100, 100 + found[0][1].size]


@pytest.mark.parametrize("where", [20, 70, 90])
def test_a_flipped_bit_is_found_with_its_place(where: int) -> None:
    whole = bytes(made(TOPICS)[0].data)
    data = bytearray(whole + whole)
    data[len(whole) + where] ^= 1
    with pytest.raises(Damaged) as damaged:
        list(batches.batches_in(bytes(data), "00000000.log"))
    assert damaged.value.path == "00000000.log"
    assert damaged.value.position == len(whole)


def test_an_incomplete_batch_is_damage() -> None:
    whole = bytes(made(TOPICS)[0].data)
    for size in (5, 30, len(whole) - 1):
        with pytest.raises(Damaged):
            list(batches.batches_in(whole[:size], "file"))


def test_an_unknown_record_type_is_damage() -> None:
    values = [b"\x01\x63\x00\x00"]
    (batch,) = [Batch(b) for b in batches.data_batches([values], 0, 0, NOW)]
    with pytest.raises(Damaged, match="key 99"):
        batches.read_metadata(batch, "file", 0)


def test_records_are_written_in_the_version_of_the_cluster() -> None:
    assert batches.encoded([FeatureLevelRecord("metadata.version", 30)], 30) == [
        b"\x01\x0c\x00\x11metadata.version\x00\x1e\x00"
    ]
