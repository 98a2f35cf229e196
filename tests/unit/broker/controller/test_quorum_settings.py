"""Settings of the controller, from those of the broker."""

from ottla.broker.controller.quorum_settings import controller_settings
from ottla.broker.settings.settings import Settings, zero_configuration


def load(**settings: str) -> Settings:
    properties = zero_configuration("/data", port=9092)
    properties |= {key.replace("_", "."): value for key, value in settings.items()}
    return Settings.load(properties, host_name=lambda: "here")


def test_the_controller_gets_the_defaults_of_new_topics() -> None:
    told = controller_settings(load(num_partitions="7"))
    assert (told.node_id, told.partitions_default, told.replication_factor_default) == (1, 7, 1)
    assert told.broker_configs["num.partitions"] == "7"
