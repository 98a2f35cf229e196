"""`ottla cluster`: what it gathers."""

import pytest

from ottla.cli.cluster import _look, _show
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages import describe_cluster, describe_log_dirs
from tests.unit.client.fake_broker import World


def test_everything_is_gathered_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    world = World()
    world.broker.topics.update({"t": 3, "u": 1})
    world.broker.leaders["t", 2] = -1
    brokers = [
        describe_cluster.DescribeClusterBroker(2, "b", 9092, None, True),
        describe_cluster.DescribeClusterBroker(1, "a", 9092, "rack"),
    ]
    partitions = [describe_log_dirs.DescribeLogDirsPartition(0, 1500)]
    directory = describe_log_dirs.DescribeLogDirsResult(
        0, "/data", [describe_log_dirs.DescribeLogDirsTopic("t", partitions)], 10_000, 9_000
    )
    world.broker.always[ApiKey.DESCRIBE_CLUSTER] = lambda request, version: (
        describe_cluster.Response(cluster_id="c", controller_id=1, brokers=brokers)
    )
    world.broker.always[ApiKey.DESCRIBE_LOG_DIRS] = lambda request, version: (
        describe_log_dirs.Response(results=[directory])
    )

    async def work() -> None:
        seen = await _look(world.cluster())
        assert seen["cluster_id"] == "c"
        assert seen["controller"] == 1
        assert [item["id"] for item in seen["brokers"]] == [1, 2]  # type: ignore[attr-defined]
        assert (seen["topics"], seen["partitions"]) == (2, 4)
        assert seen["partitions_without_leader"] == 1
        assert seen["log_dirs"] == [
            {
                "broker": 1,
                "path": "/data",
                "state": "online",
                "partitions": 1,
                "bytes": 1500,
                "free_bytes": 9000,
                "total_bytes": 10000,
            }
        ]
        _show(seen)

    world.run(work)
    shown = capsys.readouterr().out
    assert "Cluster c, controller 1" in shown
    assert "fenced" in shown
    assert "1.5 KiB" in shown


def test_disks_that_cannot_be_asked_for_do_not_hide_the_rest() -> None:
    world = World()
    broker = describe_cluster.DescribeClusterBroker(9, "nobody", 9092)
    world.broker.always[ApiKey.DESCRIBE_CLUSTER] = lambda request, version: (
        describe_cluster.Response(cluster_id="c", brokers=[broker])
    )

    async def work() -> None:
        seen = await _look(world.cluster())
        (directory,) = seen["log_dirs"]  # type: ignore[misc]
        assert "broker 9" in directory["state"]

    world.run(work)
