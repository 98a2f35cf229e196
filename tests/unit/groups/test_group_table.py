"""Records of one kind of group end the other kind; offsets stay."""

import pytest

from ottla.groups.group_table import GroupTable
from ottla.model.errors import Refusal
from ottla.model.machine import Producer, Verdict
from ottla.model.types import ProducerId
from ottla.protocol.consumer_group_records import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from ottla.protocol.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    GroupRecord,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)

COMMIT = GroupRecord(OffsetCommitKey("g", "t", 0), OffsetCommitValue(5))
MEMBER = MemberMetadata("m", None, "c", "h", 1, 1, b"", b"")
CLASSIC = GroupRecord(GroupMetadataKey("g"), GroupMetadataValue("consumer", 3, members=[MEMBER]))
CONSUMERS = GroupRecord(ConsumerGroupMetadataKey("g"), ConsumerGroupMetadataValue(1))


def table_of(*records: GroupRecord) -> GroupTable:
    table = GroupTable()
    for offset, record in enumerate(records):
        table.apply(offset, record, None)
    return table


def end(record: GroupRecord) -> GroupRecord:
    return GroupRecord(record.key, None)


def test_offsets_alone_are_an_empty_classic_group() -> None:
    table = table_of(COMMIT)
    assert table.classic["g"].is_empty
    table.apply(9, end(COMMIT), None)
    assert (table.classic, table.offsets) == ({}, {})


def test_a_consumer_group_takes_the_place_of_a_classic_one_and_back() -> None:
    table = table_of(COMMIT, CLASSIC, end(CLASSIC), CONSUMERS)
    assert (set(table.classic), set(table.consumers.by_id)) == (set(), {"g"})
    table.apply(9, end(CONSUMERS), None)
    assert (set(table.classic), set(table.consumers.by_id)) == ({"g"}, set())
    table.apply(9, CLASSIC, None)
    assert table.classic["g"].members.keys() == {"m"}
    assert table.offsets["g"]


def test_only_a_group_that_was_just_made_of_a_consumer_group_is_converted() -> None:
    assert table_of(CONSUMERS, end(CONSUMERS), CLASSIC).classic["g"].is_converted
    assert not table_of(CONSUMERS, end(CONSUMERS), CLASSIC, CLASSIC).classic["g"].is_converted
    assert not table_of(CLASSIC).classic["g"].is_converted
    assert not table_of(CONSUMERS, end(CONSUMERS), COMMIT, CLASSIC).classic["g"].is_converted


def test_an_end_of_what_is_unknown_is_passed_over() -> None:
    gone = GroupRecord(ConsumerGroupMemberMetadataKey("g", "m"), None)
    table = table_of(gone, end(CONSUMERS), end(CLASSIC), end(COMMIT))
    assert (table.classic, table.consumers.by_id, table.offsets) == ({}, {}, {})


def test_the_end_of_a_part_does_not_end_a_classic_group_that_begins() -> None:
    """A joiner of the other kind is there already while the old group's end is read."""
    member = ConsumerGroupMemberMetadataKey("g", "m")
    table = table_of(GroupRecord(member, ConsumerGroupMemberMetadataValue()), CONSUMERS)
    begun = table.group_or_new("g")
    table.apply(9, GroupRecord(member, None), None)
    table.apply(9, end(CONSUMERS), None)
    assert table.classic["g"] is begun


def test_a_consumer_group_keeps_its_kind_while_a_classic_one_of_its_id_is_not_recorded() -> None:
    table = table_of(CONSUMERS)
    assert table.kind_of("g") is table.consumers
    table.group_or_new("g")
    assert table.kind_of("g") is table.consumers
    table.apply(9, end(CONSUMERS), None)
    assert table.kind_of("g") is table.classics
    with pytest.raises(Refusal):
        table.kind_of("other")


ONE, TWO = (Producer(ProducerId(id_), 0) for id_ in (1, 2))


def commit_of(offset: int, partition: int = 0) -> GroupRecord:
    return GroupRecord(OffsetCommitKey("g", "t", partition), OffsetCommitValue(offset))


def offsets(table: GroupTable) -> dict[int, int]:
    return {at.partition: value.offset for at, value in table.offsets.get("g", {}).items()}


def test_offsets_of_a_transaction_count_once_it_is_committed_and_never_if_aborted() -> None:
    table = table_of(commit_of(5))
    table.apply(1, commit_of(7), ONE)
    table.apply(2, commit_of(8, partition=1), TWO)
    assert offsets(table) == {0: 5}
    table.ended(TWO, Verdict.ABORT)
    table.ended(ONE, Verdict.COMMIT)
    assert offsets(table) == {0: 7}
    assert table.pending == {}
    table.ended(ONE, Verdict.COMMIT)
    assert offsets(table) == {0: 7}, "a marker without a transaction means nothing"


def test_the_later_record_of_an_offset_counts_whichever_marker_comes_first() -> None:
    for first, second in ((ONE, TWO), (TWO, ONE)):
        table = table_of()
        table.apply(0, commit_of(7), ONE)
        table.apply(1, commit_of(8), TWO)
        table.ended(first, Verdict.COMMIT)
        table.ended(second, Verdict.COMMIT)
        assert offsets(table) == {0: 8}


def test_a_plain_commit_or_deletion_after_it_supersedes_an_offset_of_an_open_transaction() -> None:
    for later, kept in ((commit_of(9), {0: 9}), (end(COMMIT), {})):
        table = table_of()
        table.apply(0, commit_of(7), ONE)
        table.apply(1, later, None)
        table.ended(ONE, Verdict.COMMIT)
        assert offsets(table) == kept
