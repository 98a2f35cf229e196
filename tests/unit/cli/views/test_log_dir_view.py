"""What `ottla log-dirs` shows."""

import json

import pytest

from ottla.cli.views.log_dir_view import describe_log_dirs
from ottla.client.errors import ClientError
from tests.unit.cli.cluster_world import ClusterWorld


def test_each_directory_has_its_replicas_or_its_error(capsys: pytest.CaptureFixture[str]) -> None:
    world = ClusterWorld()
    world.run(lambda: describe_log_dirs(world.cluster(), [], [1], as_json=True))
    good, bad = json.loads(capsys.readouterr().out)
    assert (good["log_dir"], good["error"], good["usable_bytes"]) == ("/data", None, 9_000)
    (replica,) = good["partitions"]
    assert (replica["topic"], replica["partition"], replica["bytes"]) == ("t", 0, 1500)
    assert (bad["log_dir"], bad["error"]) == ("/bad", "KAFKA_STORAGE_ERROR")


def test_the_table_names_broker_directory_and_size(capsys: pytest.CaptureFixture[str]) -> None:
    world = ClusterWorld()
    world.run(lambda: describe_log_dirs(world.cluster(), ["t"], [], as_json=False))
    shown = capsys.readouterr().out
    assert "Broker 1, /data: online" in shown
    assert "Broker 2, /bad: KAFKA_STORAGE_ERROR" in shown
    assert "1.5 KiB" in shown


def test_a_broker_that_does_not_run_is_refused() -> None:
    world = ClusterWorld()

    async def work() -> None:
        with pytest.raises(ClientError, match="broker 3 does not run: those that do are 1, 2"):
            await describe_log_dirs(world.cluster(), [], [3], as_json=False)

    world.run(work)
