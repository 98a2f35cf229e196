"""Groups as a kind of coordinators: what their machines are told."""

from ottla.broker.coordinators.group_kind import GroupCodec, GroupKind
from ottla.groups.coordinator import TopicsChanged, TopicsDeleted
from ottla.metadata.image.delta import ImageDelta
from ottla.protocol.group_records import GroupMetadataKey, GroupRecord
from tests.unit.broker.serving import serving


def test_records_are_decoded_as_they_were_encoded() -> None:
    codec = GroupCodec()
    record = GroupRecord(GroupMetadataKey("g"), None)
    assert codec.decode(*codec.encode(record)) == record


def test_machines_are_told_of_topics_that_come_and_go_and_of_nothing_else() -> None:
    with serving() as world:
        world.topic("t")
        topic = world.broker.image.topics_by_name["t"]
        kind = GroupKind(world.broker)
        assert kind.changes(ImageDelta()) == []
        created = [command.request for command in kind.changes(ImageDelta(created=[topic]))]
        assert created == [TopicsChanged()]
        deleted = [command.request for command in kind.changes(ImageDelta(deleted=[topic]))]
        assert deleted == [TopicsDeleted(frozenset({"t"})), TopicsChanged()]


def test_the_replication_factor_counts_as_set_only_if_the_operator_set_it() -> None:
    with serving() as world:
        assert not GroupKind(world.broker).plan().is_factor_set
    with serving(offsets_topic_replication_factor=1) as world:
        assert GroupKind(world.broker).plan().is_factor_set
