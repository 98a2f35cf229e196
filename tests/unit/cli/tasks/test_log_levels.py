"""`ottla loggers`: each broker is asked for itself."""

import json

import pytest

from ottla.cli.tasks.log_levels import UnknownLogger, list_loggers, set_level_of
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages import describe_configs, incremental_alter_configs
from tests.unit.cli.cluster_world import ClusterWorld

NAME = "ottla.broker"


class LoggerWorld(ClusterWorld):
    """Brokers 1 and 2, with levels of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.levels = {"1": {NAME: "INFO", "root": "WARN"}, "2": {NAME: "DEBUG", "root": "WARN"}}
        self.broker.always[ApiKey.DESCRIBE_CONFIGS] = self._described
        self.broker.always[ApiKey.INCREMENTAL_ALTER_CONFIGS] = self._altered

    def _described(
        self, request: describe_configs.Request, version: int
    ) -> describe_configs.Response:
        (resource,) = request.resources
        assert resource.resource_type == 8
        found = [
            describe_configs.DescribeConfigsResourceResult(*item)
            for item in self.levels[resource.resource_name].items()
        ]
        return describe_configs.Response(0, [describe_configs.DescribeConfigsResult(configs=found)])

    def _altered(
        self, request: incremental_alter_configs.Request, version: int
    ) -> incremental_alter_configs.Response:
        (resource,) = request.resources
        (config,) = resource.configs
        levels = self.levels[resource.resource_name]
        levels[config.name] = config.value or levels["root"]
        answer = incremental_alter_configs.AlterConfigsResourceResponse()
        return incremental_alter_configs.Response(responses=[answer])


def test_every_broker_has_its_column_and_root_is_first(capsys: pytest.CaptureFixture[str]) -> None:
    world = LoggerWorld()
    world.run(lambda: list_loggers(world.cluster(), "", False, [], as_json=False))
    head, _, root, other = capsys.readouterr().out.splitlines()
    assert head.split() == ["Logger", "Broker", "1", "Broker", "2"]
    assert root.split() == ["root", "WARN", "WARN"]
    assert other.split() == [NAME, "INFO", "DEBUG"]


def test_loggers_are_chosen_by_a_part_of_their_name_or_the_whole(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for text, exact, expected in (("roo", False, ["root"]), ("roo", True, []), ("x", False, [])):
        world = LoggerWorld()
        world.run(
            lambda world=world, text=text, exact=exact: list_loggers(  # type: ignore[misc]
                world.cluster(), text, exact, [1], as_json=True
            )
        )
        shown = json.loads(capsys.readouterr().out)
        assert [row["logger"] for row in shown] == expected


def test_a_level_is_set_on_all_brokers_or_on_the_named_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    world = LoggerWorld()
    world.run(lambda: set_level_of(world.cluster(), NAME, "ERROR", [], as_json=True))
    assert [levels[NAME] for levels in world.levels.values()] == ["ERROR", "ERROR"]
    assert json.loads(capsys.readouterr().out)[1] == {
        "broker": 2,
        "logger": NAME,
        "level": "ERROR",
    }
    world = LoggerWorld()
    world.run(lambda: set_level_of(world.cluster(), NAME, None, [2], as_json=False))
    assert [levels[NAME] for levels in world.levels.values()] == ["INFO", "WARN"]
    assert capsys.readouterr().out == f"Broker 2: {NAME} logs from WARN on.\n"


def test_a_mistyped_logger_is_told_with_the_nearest_one() -> None:
    world = LoggerWorld()

    async def work() -> None:
        with pytest.raises(UnknownLogger, match=r"did you mean 'ottla\.broker'"):
            await set_level_of(world.cluster(), "ottla.brokr", "INFO", [], as_json=False)

    world.run(work)
