"""Replicas, leaders and oldest records of a real cluster, changed by `ottla` as a user types it."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.testing import Cluster

OTTLA = [sys.executable, "-m", "ottla.cli.main"]
TOPIC = "orders"
SETTINGS = {
    "ottla.rebalance.enable": False,
    "auto.leader.rebalance.enable": False,
    "offsets.topic.num.partitions": 1,
}


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    with Cluster(brokers=3, settings=SETTINGS) as cluster:
        yield cluster


def ottla(cluster: Cluster, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*OTTLA, *arguments, "-b", cluster.bootstrap_servers],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == status, (done.stdout, done.stderr)
    return done


def json_of(cluster: Cluster, *arguments: str) -> Any:  # noqa: ANN401
    return json.loads(ottla(cluster, *arguments, "--json").stdout)


def replicas(cluster: Cluster, topic: str) -> dict[int, list[int]]:
    (described,) = json_of(cluster, "topics", "describe", topic)
    return {row["partition"]: row["replicas"] for row in described["partitions"]}


@pytest.mark.timeout(180)
def test_a_plan_is_shown_saved_carried_out_and_taken_back(three: Cluster, tmp_path: Path) -> None:
    ottla(three, "topics", "create", TOPIC, "--assignment", "1:2,1:2,2:1,2:1")
    three.produce(TOPIC, *(b"%d" % number for number in range(2_000)))
    before = replicas(three, TOPIC)

    shown = ottla(three, "partitions", "reassign", TOPIC, "--brokers", "2,3", "--dry-run")
    assert "Will be" in shown.stdout
    assert "Nothing was changed" in shown.stderr
    assert replicas(three, TOPIC) == before

    plan = json_of(three, "partitions", "reassign", TOPIC, "--brokers", "2,3", "--dry-run")
    saved = tmp_path / "plan.json"
    saved.write_text(json.dumps(plan))
    done = ottla(three, "partitions", "reassign", "--file", str(saved))
    assert "4 partitions moved." in done.stdout
    assert "4 of 4 partitions moved" in done.stderr
    moved = replicas(three, TOPIC)
    assert {node for nodes in moved.values() for node in nodes} == {2, 3}
    assert sorted(nodes[0] for nodes in moved.values()) == [2, 2, 3, 3]
    assert len(three.records(TOPIC)) == 2_000

    saved.write_text(json.dumps(plan["before"]))
    ottla(three, "partitions", "reassign", "--file", str(saved), "--yes")
    assert replicas(three, TOPIC) == before
    again = ottla(three, "partitions", "reassign", "--file", str(saved))
    assert "Every replica is where it shall be." in again.stdout


@pytest.mark.timeout(180)
def test_the_replication_factor_grows_and_shrinks(three: Cluster) -> None:
    three.create_topic("grown", 3, replication_factor=1)
    three.produce("grown", *(b"%d" % number for number in range(500)))
    grown = ottla(three, "topics", "alter", "grown", "--replication-factor", "3")
    assert "3 replicas of each partition now" in grown.stdout
    assert all(sorted(nodes) == [1, 2, 3] for nodes in replicas(three, "grown").values())
    assert all(sorted(three.isr("grown", index)) == [1, 2, 3] for index in range(3))
    ottla(three, "topics", "alter", "grown", "--replication-factor", "1")
    assert all(len(nodes) == 1 for nodes in replicas(three, "grown").values())
    assert len(three.records("grown")) == 500
    many = ottla(three, "topics", "alter", "grown", "-r", "4", status=1)
    assert "needs 4 brokers, and there are 3 to choose from" in many.stderr
    none = ottla(three, "topics", "alter", "grwn", "-r", "2", status=1)
    assert "did you mean 'grown'?" in none.stderr


@pytest.mark.timeout(180)
def test_a_move_to_a_stopped_broker_is_listed_and_cancelled(three: Cluster) -> None:
    ottla(three, "topics", "create", "stuck", "--assignment", "1:2")
    three.produce("stuck", b"x" * 5_000)
    three.stop(3)
    try:
        begun = ottla(three, "partitions", "reassign", "stuck", "--brokers", "1,3", "--no-wait")
        assert "broker 3 does not run" in begun.stderr
        assert "1 partition on the move" in begun.stdout
        (move,) = json_of(three, "partitions", "moves")
        assert (move["topic"], move["adding"], move["removing"]) == ("stuck", [3], [2])
        assert move["bytes_copied"] == 0
        assert move["bytes"] > 5_000
        assert "stuck-0" in ottla(three, "partitions", "moves").stdout
        assert "1 move cancelled." in ottla(three, "partitions", "cancel", "stuck:0").stdout
        assert json_of(three, "partitions", "moves") == []
        assert replicas(three, "stuck") == {0: [1, 2]}
    finally:
        three.start_node(3)


@pytest.mark.timeout(180)
def test_preferred_leaders_lead_again(three: Cluster) -> None:
    ottla(three, "topics", "create", "led", "--assignment", "3:1,3:2")
    three.stop(3)
    try:
        absent = ottla(three, "partitions", "elect", "led", status=1)
        assert "2 partitions could not get the leader asked for" in absent.stderr
    finally:
        three.start_node(3)
    three.until(lambda: all(3 in three.isr("led", index) for index in (0, 1)))
    assert {three.leader("led", index) for index in (0, 1)} == {1, 2}
    assert "1 partition got another leader: led-1." in (
        ottla(three, "partitions", "elect", "led:1").stdout
    )
    assert [three.leader("led", index) for index in (0, 1)] == [1, 3]
    ottla(three, "partitions", "elect")
    assert three.leader("led", 0) == 3
    assert "already" in ottla(three, "partitions", "elect", "led").stdout


@pytest.mark.timeout(120)
def test_the_oldest_records_are_deleted_up_to_an_offset_or_all(three: Cluster) -> None:
    three.create_topic("old", 2, replication_factor=2)
    for partition in ("0", "1"):
        values = [str(number) for number in range(500)]
        ottla(three, "produce", "old", "--partition", partition, *values)
    dry = json_of(three, "records", "delete", "old", "--before", "end", "--dry-run")
    assert sum(row["end"] for row in dry) == 1_000
    assert len(three.records("old")) == 1_000
    assert "all records are younger" in (
        ottla(three, "records", "delete", "old", "--before", "-1d").stderr
    )
    ottla(three, "records", "delete", "old:0", "--before", "100")
    left = [(each.partition, each.offset) for each in three.records("old")]
    assert min(offset for partition, offset in left if partition == 0) == 100
    assert min(offset for partition, offset in left if partition == 1) == 0
    shown = ottla(three, "records", "delete", "old", "--before", "end", "--yes")
    assert "Deleted" in shown.stdout
    assert three.records("old") == []


@pytest.mark.timeout(60)
def test_mistakes_are_answered_with_what_is_possible(three: Cluster, tmp_path: Path) -> None:
    three.create_topic("plain", 2, replication_factor=1)
    broken = tmp_path / "broken.json"
    broken.write_text('{"partitions": [{"topic": "plain"}]}')
    for words, arguments, status in [
        ("no broker 7: those registered are 1, 2, 3", ["reassign", "plain", "--brokers", "7"], 1),
        ("has no partition 9: it has 2", ["reassign", "plain:9", "--brokers", "1"], 1),
        ("did you mean 'plain'?", ["reassign", "plainn", "--brokers", "1"], 1),
        ("expected ids like 1,2,3", ["reassign", "plain", "--brokers", "one"], 2),
        ('"partitions":', ["reassign", "--file", str(broken)], 2),
        ("give --brokers with topics, or --file", ["reassign", "plain"], 2),
        ("name the partitions", ["elect", "--unclean"], 2),
    ]:
        failed = ottla(three, "partitions", *arguments, status=status)
        assert words in failed.stderr, failed.stderr
    missing = ottla(three, "records", "delete", "plain", "--before", "soon", status=2)
    assert "expected an offset, a time" in missing.stderr


@pytest.mark.timeout(60)
def test_on_a_terminal_it_asks_after_the_plan(three: Cluster) -> None:
    ottla(three, "topics", "create", "asked", "--assignment", "1")
    arguments = ["partitions", "reassign", "asked", "--brokers", "2"]
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*OTTLA, *arguments, "-b", three.bootstrap_servers],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        os.write(ours, b"n\n")
        said, _ = process.communicate(timeout=30)
    os.close(ours)
    os.close(theirs)
    assert said.index("Will be") < said.index("Move 1 partition?")
    assert process.returncode == 1
    assert replicas(three, "asked") == {0: [1]}


@pytest.mark.timeout(90)
def test_log_directories_show_the_size_of_each_replica(three: Cluster) -> None:
    ottla(three, "topics", "create", "sized", "--assignment", "1:3")
    three.produce("sized", b"x" * 50_000)
    found = json_of(three, "log-dirs", "describe", "sized")
    sizes = {item["broker"]: [row["bytes"] for row in item["partitions"]] for item in found}
    assert sizes[2] == []
    assert min(*sizes[1], *sizes[3]) > 50_000
    assert "sized-0" in ottla(three, "log-dirs", "describe", "--broker", "1").stdout
    missing = ottla(three, "log-dirs", "describe", "--broker", "9", status=1)
    assert "broker 9 does not run: those that do are 1, 2, 3" in missing.stderr
