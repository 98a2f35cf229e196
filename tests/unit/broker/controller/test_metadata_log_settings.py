"""Settings of the metadata log, from those of the broker."""

from ottla.broker.controller.metadata_log_settings import metadata_log_settings
from ottla.broker.settings.settings import Settings, zero_configuration


def load(**settings: str) -> Settings:
    properties = zero_configuration("/data", port=9092)
    properties |= {key.replace("_", "."): value for key, value in settings.items()}
    return Settings.load(properties, host_name=lambda: "here")


def test_the_metadata_log_has_settings_of_its_own() -> None:
    loaded = metadata_log_settings(
        load(metadata_log_dir="/meta", metadata_log_segment_bytes="12345678")
    )
    assert (loaded.log_dir, loaded.segment_bytes) == ("/meta", 12345678)
    assert loaded.static_voters is None
    assert metadata_log_settings(load()).log_dir == "/data"


def test_controller_quorum_voters_become_static_voters() -> None:
    loaded = metadata_log_settings(load(controller_quorum_voters="1@here:9093"))
    assert loaded.static_voters is not None
    [voter] = loaded.static_voters.by_id.values()
    assert (voter.id, voter.endpoints["CONTROLLER"].port) == (1, 9093)
