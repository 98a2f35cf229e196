"""Records of one kind of group end the other kind; offsets stay."""

from ottla.groups.group_table import GroupTable
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
    for record in records:
        table.apply(record)
    return table


def end(record: GroupRecord) -> GroupRecord:
    return GroupRecord(record.key, None)


def test_offsets_alone_are_an_empty_classic_group() -> None:
    table = table_of(COMMIT)
    assert table.classic["g"].is_empty
    table.apply(end(COMMIT))
    assert (table.classic, table.offsets) == ({}, {})


def test_a_consumer_group_takes_the_place_of_a_classic_one_and_back() -> None:
    table = table_of(COMMIT, CLASSIC, end(CLASSIC), CONSUMERS)
    assert (set(table.classic), set(table.consumers.by_id)) == (set(), {"g"})
    table.apply(end(CONSUMERS))
    assert (set(table.classic), set(table.consumers.by_id)) == ({"g"}, set())
    table.apply(CLASSIC)
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
    table.apply(GroupRecord(member, None))
    table.apply(end(CONSUMERS))
    assert table.classic["g"] is begun
