"""Output of `ottla cluster`."""

import json

import pytest

from ottla.cli.views import cluster_view
from ottla.cli.views.cluster_view import describe_cluster
from ottla.protocol.apis import ApiKey
from tests.unit.cli.cluster_world import ClusterWorld


def shown(world: ClusterWorld, capsys: pytest.CaptureFixture[str], *, as_json: bool) -> str:
    world.run(lambda: describe_cluster(world.cluster(), as_json=as_json))
    return capsys.readouterr().out


def test_the_cluster_view_collects_all_parts(capsys: pytest.CaptureFixture[str]) -> None:
    seen = json.loads(shown(ClusterWorld(), capsys, as_json=True))
    assert (seen["cluster_id"], seen["controller"]) == ("c", 1)
    assert [item["id"] for item in seen["brokers"]] == [1, 2, 3]
    assert (seen["topics"], seen["partitions"], seen["partitions_without_leader"]) == (1, 3, 0)
    assert [item["partition"] for item in seen["under_replicated"]] == [1, 2]
    assert seen["reassignments"] == [
        {"topic": "t", "partition": 0, "replicas": [1, 2, 4], "adding": [4], "removing": [2]}
    ]


def test_quorum_nodes_are_shown_with_their_lag(capsys: pytest.CaptureFixture[str]) -> None:
    quorum = json.loads(shown(ClusterWorld(), capsys, as_json=True))["quorum"]
    assert (quorum["leader"], quorum["epoch"], quorum["high_watermark"]) == (1, 7, 98)
    leader, follower = quorum["voters"]
    assert (leader["lag"], follower["lag"]) == (0, 10)
    assert 1500 <= follower["caught_up_ms_ago"] < 2500
    (observer,) = quorum["observers"]
    assert (observer["lag"], observer["caught_up_ms_ago"]) == (None, None)


def test_tables_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(ClusterWorld(), capsys, as_json=False).splitlines()
    assert lines[0] == "Cluster c, controller 1"
    assert "2 under-replicated, 1 on the move" in lines[1]
    assert any("fenced" in line for line in lines)
    assert any(line.split() == ["t-0", "1,", "2,", "4", "4", "2"] for line in lines)
    assert any(line.split() == ["t-1", "2", "2,", "1", "2"] for line in lines)
    assert any(line.split()[:4] == ["1", "leader", "100", "0"] for line in lines if line)


def test_a_long_list_is_truncated_with_a_count(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_view, "ROWS_MAX", 1)
    text = shown(ClusterWorld(), capsys, as_json=False)
    assert "... and 1 partition more; --json shows all" in text
    assert "t-2" not in text


def test_parts_that_are_not_reported_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    world = ClusterWorld()
    for key in (ApiKey.DESCRIBE_QUORUM, ApiKey.LIST_PARTITION_REASSIGNMENTS):
        del world.broker.ranges[key]
    seen = json.loads(shown(world, capsys, as_json=True))
    assert (seen["controller"], seen["quorum"], seen["reassignments"]) == (2, None, [])
