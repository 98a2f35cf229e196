from ottla.metadata.image.image import ClusterImage
from ottla.metadata.image.snapshot import broker_record, partition_record, records_of
from ottla.protocol import metadata_records as records
from ottla.protocol.security_records import EntityData
from tests.unit.metadata.controller_driver import CLUSTER, ControllerDriver, replayed, state_of


def full_image() -> ClusterImage:
    """An image with every kind of state that a snapshot keeps."""
    deciding = ControllerDriver(brokers=3, features={"group.version": 1})
    deciding.create("a", 3, 2, retention_ms="5")
    deciding.create("b", 1)
    deciding.write(
        records.ConfigRecord(4, "", "log.retention.ms", "9"),
        records.ConfigRecord(32, "group", "consumer.session.timeout.ms", "9"),
        records.ProducerIdsRecord(1, 5, 3000),
        records.AccessControlEntryRecord(id=b"a" * 16, principal="User:x"),
        records.UserScramCredentialRecord("u", 1, b"salt", b"s", b"k", 4096),
        records.DelegationTokenRecord("o", "r", ["x"], 1, 2, 3, "t"),
        records.ClientQuotaRecord([EntityData("user", "u"), EntityData("client-id", None)], "r", 1),
        records.ClientQuotaRecord([EntityData("user", "u")], "r", 2.5),
        records.RegisterControllerRecord(
            1,
            b"c" * 16,
            False,
            [records.ControllerEndpoint("CONTROLLER", "h", 9093, 0)],
            [records.ControllerFeature("metadata.version", 7, 30)],
        ),
        records.ZkMigrationStateRecord(0),
        records.PartitionChangeRecord(
            partition_id=0,
            topic_id=deciding.image.topics_by_name["b"].id,
            isr=[],
            leader=-1,
            eligible_leader_replicas=[1],
            last_known_elr=[1],
            leader_recovery_state=1,
        ),
        records.BrokerRegistrationChangeRecord(2, deciding.epochs[2], in_controlled_shutdown=1),
    )
    return deciding.image


def test_an_image_replayed_from_its_records_is_the_same() -> None:
    image = full_image()
    assert state_of(replayed(list(records_of(image)))) == state_of(image)


def test_an_empty_image_has_no_records() -> None:
    assert list(records_of(ClusterImage(CLUSTER))) == []


def test_metadata_version_comes_first() -> None:
    first = next(iter(records_of(full_image())))
    assert first == records.FeatureLevelRecord("metadata.version", 30)


def test_records_for_an_older_metadata_version_omit_newer_fields() -> None:
    image = full_image()
    partition = image.topics_by_name["a"].partitions[0]
    assert partition_record(b"t" * 16, 0, partition, 16).directories == []
    assert partition_record(b"t" * 16, 0, partition, 17).directories != []
    old = broker_record(image.brokers[1], 16)  # type: ignore[index]
    assert (old.log_dirs, old.cordoned_log_dirs) == ([], None)
    new = broker_record(image.brokers[1], 30)  # type: ignore[index]
    assert (new.log_dirs, new.cordoned_log_dirs) == ([b"\1" * 16], [])
