import pytest

from ottla.metadata.image.cluster import MIGRATING_DIRECTORY, NO_LEADER, RECOVERING, Endpoint
from ottla.metadata.image.image import ClusterImage, InconsistentRecord
from ottla.protocol import metadata_records as records
from ottla.protocol.metadata_records import MetadataRecord
from ottla.protocol.security_records import EntityData
from tests.unit.metadata.controller_driver import replayed

TOPIC, OTHER = b"t" * 16, b"o" * 16


def partition(index: int = 0, **change: object) -> records.PartitionRecord:
    fields: dict[str, object] = {
        "partition_id": index,
        "topic_id": TOPIC,
        "replicas": [1, 2],
        "isr": [1, 2],
        "leader": 1,
        "leader_epoch": 3,
        "partition_epoch": 7,
        "directories": [b"a" * 16, b"b" * 16],
    }
    return records.PartitionRecord(**(fields | change))  # type: ignore[arg-type]


def change(**fields: object) -> records.PartitionChangeRecord:
    return records.PartitionChangeRecord(partition_id=0, topic_id=TOPIC, **fields)  # type: ignore[arg-type]


def with_topic(*more: MetadataRecord) -> ClusterImage:
    return replayed([records.TopicRecord("t", TOPIC), partition(), *more])


def test_a_topic_is_found_by_name_and_by_id() -> None:
    image = with_topic()
    assert image.topics_by_name["t"] is image.topics_by_id[TOPIC]
    assert image.topics_by_name["t"].partitions[0].leader == 1


def test_partitions_are_counted_over_all_topics() -> None:
    other = [records.TopicRecord("o", OTHER), partition(topic_id=OTHER), partition(1)]
    assert with_topic(*other).partition_count == 3


def test_a_new_leader_counts_as_a_new_epoch_even_if_it_is_the_old_one() -> None:
    after = with_topic(change(leader=1)).topics_by_id[TOPIC].partitions[0]
    assert (after.leader, after.leader_epoch, after.partition_epoch) == (1, 4, 8)


def test_a_change_without_a_leader_keeps_the_leader_epoch() -> None:
    after = with_topic(change(isr=[1])).topics_by_id[TOPIC].partitions[0]
    assert (after.isr, after.leader_epoch, after.partition_epoch) == ((1,), 3, 8)


def test_partition_change_keeps_fields_it_does_not_name() -> None:
    after = (
        with_topic(
            change(isr=[], leader=-1, eligible_leader_replicas=[1], last_known_elr=[1]),
            change(leader_recovery_state=RECOVERING, adding_replicas=[3], removing_replicas=[2]),
            change(replicas=[1, 3], directories=[b"a" * 16, b"c" * 16]),
        )
        .topics_by_id[TOPIC]
        .partitions[0]
    )
    assert after.leader == NO_LEADER
    assert (after.isr, after.elr, after.last_known_elr) == ((), (1,), (1,))
    assert (after.adding, after.removing, after.leader_recovery_state) == ((3,), (2,), RECOVERING)
    assert (after.replicas, after.directories) == ((1, 3), (b"a" * 16, b"c" * 16))


def test_a_partition_without_directories_is_of_an_older_release() -> None:
    image = replayed([records.TopicRecord("t", TOPIC), partition(directories=[])])
    assert image.topics_by_id[TOPIC].partitions[0].directories == (MIGRATING_DIRECTORY,) * 2


def test_a_published_topic_does_not_change() -> None:
    image = with_topic()
    image.take_delta()
    held = image.topics_by_name["t"]
    image.apply(9, change(leader=2))
    assert held.partitions[0].leader == 1
    delta = image.take_delta()
    assert delta.changed == [(held, image.topics_by_name["t"])]
    assert delta.changed[0][1].partitions[0].leader == 2


def test_removing_a_topic_removes_its_configs() -> None:
    image = with_topic(records.ConfigRecord(2, "t", "retention.ms", "1"))
    image.take_delta()
    image.apply(9, records.RemoveTopicRecord(TOPIC))
    assert not image.topics_by_name
    assert not image.configs
    delta = image.take_delta()
    assert [topic.name for topic in delta.deleted] == ["t"]
    assert delta.configs == {(2, "t")}


def test_a_topic_may_be_deleted_and_recreated_in_one_delta() -> None:
    image = with_topic()
    image.take_delta()
    image.apply(9, records.RemoveTopicRecord(TOPIC))
    image.apply(10, records.TopicRecord("t", OTHER))
    delta = image.take_delta()
    assert [topic.id for topic in delta.deleted] == [TOPIC]
    assert [topic.id for topic in delta.created] == [OTHER]


def test_a_config_of_null_is_no_config() -> None:
    image = with_topic(
        records.ConfigRecord(4, "", "a", "1"),
        records.ConfigRecord(4, "", "b", "2"),
        records.ConfigRecord(4, "", "a", None),
    )
    assert image.config_of(4, "") == {"b": "2"}
    image.apply(9, records.ConfigRecord(4, "", "b", None))
    assert (4, "") not in image.configs


def test_records_in_a_transaction_count_once_it_ends() -> None:
    image = replayed([records.BeginTransactionRecord(), records.TopicRecord("t", TOPIC)])
    assert image.is_in_transaction
    assert not image.topics_by_name
    image.apply(2, records.EndTransactionRecord())
    assert "t" in image.topics_by_name
    assert not image.is_in_transaction


def test_records_of_an_aborted_transaction_never_count() -> None:
    image = replayed(
        [
            records.BeginTransactionRecord(),
            records.TopicRecord("t", TOPIC),
            records.AbortTransactionRecord(),
        ]
    )
    assert not image.topics_by_name
    assert not image.take_delta().created


def registered() -> records.RegisterBrokerRecord:
    return records.RegisterBrokerRecord(
        broker_id=1,
        incarnation_id=b"i" * 16,
        broker_epoch=5,
        end_points=[records.BrokerEndpoint("PLAINTEXT", "host", 9092, 0)],
        log_dirs=[b"d" * 16, b"e" * 16],
    )


def test_a_broker_is_fenced_until_it_is_not() -> None:
    image = replayed([registered()])
    assert image.brokers[1].is_fenced
    assert image.brokers[1].endpoints == {"PLAINTEXT": Endpoint("host", 9092, 0)}
    image.apply(1, records.BrokerRegistrationChangeRecord(1, 5, fenced=-1))
    assert image.brokers[1].is_active
    image.apply(2, records.BrokerRegistrationChangeRecord(1, 5, in_controlled_shutdown=1))
    assert not image.brokers[1].is_active
    image.apply(3, records.BrokerRegistrationChangeRecord(1, 5, log_dirs=[b"d" * 16]))
    assert image.brokers[1].directories == (b"d" * 16,)
    image.apply(4, records.BrokerRegistrationChangeRecord(1, 5, cordoned_log_dirs=[b"d" * 16]))
    assert image.brokers[1].cordoned_directories == (b"d" * 16,)
    image.apply(5, records.FenceBrokerRecord(1, 5))
    image.apply(6, records.UnfenceBrokerRecord(1, 5))
    assert not image.brokers[1].is_fenced
    image.apply(7, records.UnregisterBrokerRecord(1, 5))
    assert not image.brokers


def test_clearing_the_elr_clears_that_of_the_named_topic_or_of_all() -> None:
    elr = change(eligible_leader_replicas=[2], last_known_elr=[2])
    for name in ("t", ""):
        cleared = with_topic(elr, records.ClearElrRecord(name)).topics_by_id[TOPIC].partitions[0]
        assert (cleared.elr, cleared.last_known_elr, cleared.partition_epoch) == ((), (), 9)
    other = with_topic(elr, records.TopicRecord("other", OTHER), records.ClearElrRecord("other"))
    assert other.topics_by_id[TOPIC].partitions[0].elr == (2,)


def test_records_of_unserved_features_are_kept() -> None:
    acl = records.AccessControlEntryRecord(id=b"a" * 16, principal="User:x")
    scram = records.UserScramCredentialRecord("u", 1, b"salt", b"s", b"k", 4096)
    token = records.DelegationTokenRecord("o", "r", token_id="t")
    quota = records.ClientQuotaRecord([EntityData("user", None)], "rate", 5.0)
    image = replayed([acl, scram, token, quota, records.ZkMigrationStateRecord(3)])
    assert image.acls == {b"a" * 16: acl}
    assert image.scram == {(1, "u"): scram}
    assert image.delegation_tokens == {"t": token}
    assert image.quotas == {frozenset({("user", None)}): {"rate": 5.0}}
    assert image.zk_migration_state == 3
    for offset, record in enumerate(
        (
            records.RemoveAccessControlEntryRecord(b"a" * 16),
            records.RemoveUserScramCredentialRecord("u", 1),
            records.RemoveDelegationTokenRecord("t"),
            records.ClientQuotaRecord([EntityData("user", None)], "rate", 0.0, True),
        )
    ):
        image.apply(offset, record)
    assert not any((image.acls, image.scram, image.delegation_tokens, image.quotas))
    delta = image.take_delta()
    assert delta.acls
    assert delta.quotas
    assert delta.credentials


def test_a_feature_at_level_zero_is_not_finalized() -> None:
    image = replayed([records.FeatureLevelRecord("a", 2), records.FeatureLevelRecord("a", 0)])
    assert image.features == {}
    assert image.take_delta().features == {"a"}


@pytest.mark.parametrize(
    "record",
    [
        records.TopicRecord("t", OTHER),
        records.RemoveTopicRecord(OTHER),
        records.PartitionRecord(topic_id=OTHER),
        records.PartitionChangeRecord(partition_id=5, topic_id=TOPIC),
        records.BrokerRegistrationChangeRecord(1, 5, fenced=1),
        records.EndTransactionRecord(),
        records.AbortTransactionRecord(),
        records.RemoveAccessControlEntryRecord(OTHER),
        records.ClearElrRecord("nobody"),
    ],
)
def test_a_record_that_contradicts_earlier_ones_is_refused(record: MetadataRecord) -> None:
    image = with_topic()
    with pytest.raises(InconsistentRecord):
        image.apply(9, record)


def test_a_frozen_image_stays_as_it_was() -> None:
    image = with_topic()
    image.take_delta()
    frozen = image.frozen()
    image.apply(9, records.RemoveTopicRecord(TOPIC))
    image.apply(10, records.FeatureLevelRecord("a", 1))
    assert "t" in frozen.topics_by_name
    assert not frozen.features
