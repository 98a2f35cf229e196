from ottla.metadata.decisions import ControllerSettings
from ottla.metadata.topic_configs import created_configs, effective_config
from ottla.model.types import NodeId
from ottla.protocol.metadata_records import ConfigRecord
from tests.unit.metadata.making import Deciding

KEY = "min.insync.replicas"


def test_the_nearest_layer_that_says_something_counts() -> None:
    settings = ControllerSettings(NodeId(1), broker_configs={KEY: "2"})
    deciding = Deciding(settings=settings)
    deciding.create("t")
    assert effective_config(deciding.around, "t", KEY) == "2"
    for kind, name, value in ((4, "", "3"), (4, "1", "4"), (2, "t", "5")):
        deciding.write(ConfigRecord(kind, name, KEY, value))
        assert effective_config(deciding.around, "t", KEY) == value
    assert effective_config(Deciding().around, "t", KEY) == "1"


def test_all_configs_are_answered_but_those_for_tests() -> None:
    configs = {config.name: config for config in created_configs(Deciding().around, {})}
    assert configs[KEY].value == "1"
    assert configs[KEY].config_source == 5
    assert "internal.segment.bytes" not in configs
