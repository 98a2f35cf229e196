from ottla.metadata.decisions.context import ControllerSettings
from ottla.metadata.decisions.topic_configs import CreatedConfigs, effective_config
from ottla.model.types import NodeId
from ottla.protocol.metadata_records import ConfigRecord
from tests.unit.metadata.controller_driver import ControllerDriver

KEY = "min.insync.replicas"


def test_the_first_layer_with_a_value_wins() -> None:
    settings = ControllerSettings(NodeId(1), broker_configs={KEY: "2"})
    deciding = ControllerDriver(settings=settings)
    deciding.create("t")
    assert effective_config(deciding.context, "t", KEY) == "2"
    for kind, name, value in ((4, "", "3"), (4, "1", "4"), (2, "t", "5")):
        deciding.write(ConfigRecord(kind, name, KEY, value))
        assert effective_config(deciding.context, "t", KEY) == value
    assert effective_config(ControllerDriver().context, "t", KEY) == "1"


def test_all_configs_but_internal_ones_are_answered() -> None:
    configs = {config.name: config for config in CreatedConfigs(ControllerDriver().context).of({})}
    assert configs[KEY].value == "1"
    assert configs[KEY].config_source == 5
    assert "internal.segment.bytes" not in configs


def test_topic_configs_and_defaults_are_answered_with_their_source() -> None:
    configs = CreatedConfigs(ControllerDriver().context)
    own = configs.of({KEY: "03", "internal.segment.bytes": "1048576"})
    others = [config for config in own if config.name != KEY]
    assert others == [config for config in configs.of({}) if config.name != KEY]
    [set_here] = [config for config in own if config.name == KEY]
    assert (set_here.value, set_here.config_source, set_here.read_only) == ("3", 1, False)
    assert [config.name for config in own] == sorted(config.name for config in own)
