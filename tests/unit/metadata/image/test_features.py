from ottla.metadata.image.features import (
    advertised,
    is_elr_enabled,
    kept_but_not_served,
    raised_alone,
    record_version,
    version_named,
)
from ottla.protocol.metadata_records import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)


def test_records_are_written_in_the_version_that_the_cluster_reads() -> None:
    assert [record_version(PartitionRecord(), level) for level in (7, 16, 17, 22, 23, 30)] == [
        0, 0, 1, 1, 2, 2,
    ]  # fmt: skip
    assert record_version(PartitionChangeRecord(), 30) == 2
    assert [record_version(RegisterBrokerRecord(), level) for level in (7, 8, 17, 29, 30)] == [
        1, 2, 3, 3, 4,
    ]  # fmt: skip
    assert record_version(TopicRecord(), 30) == 0


def test_broker_change_record_has_the_lowest_sufficient_version() -> None:
    assert record_version(BrokerRegistrationChangeRecord(fenced=1), 30) == 0
    assert record_version(BrokerRegistrationChangeRecord(in_controlled_shutdown=1), 30) == 1
    assert record_version(BrokerRegistrationChangeRecord(log_dirs=[b"d" * 16]), 30) == 2
    assert record_version(BrokerRegistrationChangeRecord(cordoned_log_dirs=[]), 30) == 3


def test_unserved_features_are_kept_and_not_advertised() -> None:
    features = {"metadata.version": 30, "share.version": 1}
    assert advertised(features) == {"metadata.version": 30}
    assert kept_but_not_served(features) == {"share.version": 1}


def test_a_single_node_finalizes_served_features_once() -> None:
    raised = [FeatureLevelRecord("group.version", 1)]
    assert raised_alone({"metadata.version": 30}) == raised
    assert raised_alone({"metadata.version": 22}) == raised
    assert raised_alone({"metadata.version": 21}) == []
    assert raised_alone({"metadata.version": 30, "group.version": 1}) == []


def test_eligible_leader_replicas_need_both_levels() -> None:
    assert is_elr_enabled({"eligible.leader.replicas.version": 1, "metadata.version": 30})
    assert not is_elr_enabled({"eligible.leader.replicas.version": 1, "metadata.version": 22})
    assert not is_elr_enabled({"metadata.version": 30})


def test_a_release_stands_for_its_last_level() -> None:
    assert version_named("4.3-IV0") == 30
    assert version_named("3.7") == 19
    assert version_named("4.3.1") == 30
    assert version_named("9.9") is None
