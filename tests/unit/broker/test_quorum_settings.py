from ottla.broker.quorum_settings import controller_settings, metadata_log_settings
from ottla.broker.settings import Settings, zero_configuration
from ottla.model.types import ZERO_UUID, NodeId
from ottla.quorum.voters import Address


def settings(**change: str) -> Settings:
    properties = zero_configuration("/data", host="h")
    properties |= {key.replace("_", "."): value for key, value in change.items()}
    return Settings.load(properties, host_name=lambda: "h")


def test_the_controller_takes_its_defaults_from_the_broker() -> None:
    made = controller_settings(settings(num_partitions="5", default_replication_factor="2"))
    assert (made.node_id, made.partitions_default, made.replication_factor_default) == (1, 5, 2)
    assert made.broker_configs["num.partitions"] == "5"


def test_the_metadata_log_is_where_and_as_large_as_the_settings_say() -> None:
    made = metadata_log_settings(
        settings(
            metadata_log_dir="/meta",
            metadata_log_max_record_bytes_between_snapshots="7",
            metadata_log_max_snapshot_interval_ms="8",
            metadata_max_retention_bytes="9",
            metadata_max_retention_ms="10",
            metadata_log_segment_bytes="8388608",
            metadata_log_segment_ms="12",
        )
    )
    assert made.directory == "/meta"
    assert (made.snapshot_after_bytes, made.snapshot_after_ms) == (7, 8)
    assert (made.retention_bytes, made.retention_ms) == (9, 10)
    assert (made.segment_bytes, made.segment_ms) == (8388608, 12)
    assert made.static_voters is None


def test_static_voters_have_no_directory_ids() -> None:
    made = metadata_log_settings(settings(controller_quorum_voters="1@127.0.0.1:9093"))
    assert made.static_voters is not None
    (voter,) = made.static_voters.by_id.values()
    assert (voter.id, voter.directory_id) == (NodeId(1), ZERO_UUID)
    assert voter.endpoints == {"CONTROLLER": Address("127.0.0.1", 9093)}
