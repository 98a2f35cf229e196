"""Output of `ottla brokers`."""

import json

import pytest

from ottla.cli.views.broker_view import BrokerSeen, list_brokers
from ottla.protocol.apis import ApiKey
from tests.unit.cli.cluster_world import ClusterWorld
from tests.unit.client.fake_broker import SILENCE


def test_leaders_and_replicas_of_each_broker_are_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    world = ClusterWorld()
    world.run(lambda: list_brokers(world.cluster(), as_json=True))
    first, second, third = json.loads(capsys.readouterr().out)
    assert (first["leaders"], first["replicas"], first["replicas_out_of_sync"]) == (2, 3, 1)
    assert (second["leaders"], second["replicas"], second["rack"]) == (1, 2, "rack")
    assert (third["state"], third["replicas"], third["log_dirs"]) == ("fenced", 1, [])
    assert (first["controller"], second["controller"]) == (True, False)
    assert (first["bytes"], first["free_bytes"], first["total_bytes"]) == (1500, 9000, 10000)


def test_a_failed_directory_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    world = ClusterWorld()
    world.run(lambda: list_brokers(world.cluster(), as_json=False))
    assert "Broker 1: /bad is KAFKA_STORAGE_ERROR" in capsys.readouterr().out


def test_an_unreachable_broker_lacks_only_its_disks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    world = ClusterWorld()
    world.broker.always[ApiKey.DESCRIBE_LOG_DIRS] = lambda request, version: SILENCE
    world.run(lambda: list_brokers(world.cluster(), as_json=True))
    first = json.loads(capsys.readouterr().out)[0]
    assert (first["state"], first["bytes"], first["replicas"]) == ("no answer", None, 3)


@pytest.mark.parametrize(
    ("drained", "replicas", "state"),
    [(True, 2, "draining"), (True, 0, "drained"), (False, 2, "running"), (None, 2, "running")],
)
def test_a_drained_broker_shows_its_progress(
    drained: bool | None, replicas: int, state: str
) -> None:
    broker = BrokerSeen(1, "a", 1, None, False, False, replicas=replicas, is_drained=drained)
    assert broker.state == state
