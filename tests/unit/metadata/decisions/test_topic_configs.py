from ottla.metadata.decisions.context import ControllerSettings
from ottla.metadata.decisions.topic_configs import CreatedConfigs, effective_config
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
    configs = {config.name: config for config in CreatedConfigs(Deciding().around).of({})}
    assert configs[KEY].value == "1"
    assert configs[KEY].config_source == 5
    assert "internal.segment.bytes" not in configs


def test_what_a_topic_sets_is_answered_as_its_own_and_the_rest_as_for_all() -> None:
    configs = CreatedConfigs(Deciding().around)
    own = configs.of({KEY: "03", "internal.segment.bytes": "1048576"})
    others = [config for config in own if config.name != KEY]
    assert others == [config for config in configs.of({}) if config.name != KEY]
    [set_here] = [config for config in own if config.name == KEY]
    assert (set_here.value, set_here.config_source, set_here.read_only) == ("3", 1, False)
    assert [config.name for config in own] == sorted(config.name for config in own)
