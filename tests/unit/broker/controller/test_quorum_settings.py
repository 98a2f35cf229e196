"""What the quorum driver is told of the settings."""

from ottla.broker.controller.quorum_settings import controller_settings, metadata_log_settings
from ottla.broker.settings.settings import Settings, zero_configuration


def load(**settings: str) -> Settings:
    properties = zero_configuration("/data", port=9092)
    properties |= {key.replace("_", "."): value for key, value in settings.items()}
    return Settings.load(properties, host_name=lambda: "here")


def test_the_controller_gets_the_defaults_of_new_topics() -> None:
    told = controller_settings(load(num_partitions="7"))
    assert (told.node_id, told.partitions_default, told.replication_factor_default) == (1, 7, 1)
    assert told.broker_configs["num.partitions"] == "7"


def test_the_metadata_log_has_settings_of_its_own() -> None:
    told = metadata_log_settings(
        load(metadata_log_dir="/meta", metadata_log_segment_bytes="12345678")
    )
    assert (told.directory, told.segment_bytes) == ("/meta", 12345678)
    assert told.static_voters is None
    assert metadata_log_settings(load()).directory == "/data"


def test_voters_in_the_settings_are_taken_from_there() -> None:
    told = metadata_log_settings(load(controller_quorum_voters="1@here:9093"))
    assert told.static_voters is not None
    [voter] = told.static_voters.by_id.values()
    assert (voter.id, voter.endpoints["CONTROLLER"].port) == (1, 9093)
