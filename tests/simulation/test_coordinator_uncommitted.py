"""A coordinator that loads a log whose end is not committed, and loses that end."""

import logging
from collections.abc import Iterator

import pytest

from ottla.groups.placement import OFFSETS_TOPIC
from ottla.model.errors import ErrorCode
from ottla.protocol.messages import find_coordinator, offset_commit, offset_fetch
from tests.simulation.cluster_mutants import answers_before_its_log_is_committed
from tests.unit.broker.replicating import Cluster, Node, replicating

LONG_NS = 10**12


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("is_mutant", [False, True])
def test_no_committed_offset_that_was_read_goes_back(
    is_mutant: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three replicas the first and the second have a commit that the third lacks."""
    if is_mutant:
        answers_before_its_log_is_committed(monkeypatch)
    with replicating(offsets_topic_num_partitions=1, min_insync_replicas=2) as cluster:
        cluster.topic("t", factor=1)
        request = find_coordinator.Request(coordinator_keys=["g"])
        cluster.ask(cluster.nodes[1], request, find_coordinator.Response)
        cluster.pass_ms(1000)
        replicas = cluster.state(topic=OFFSETS_TOPIC).replicas
        first, second, third = (cluster.nodes[node] for node in replicas)
        assert cluster.leader(topic=OFFSETS_TOPIC) is first
        assert commit(cluster, first, 5) == 0
        cluster.network.cut([first.host, second.host], [third.host], LONG_NS)
        assert commit(cluster, first, 6) == ErrorCode.COORDINATOR_NOT_AVAILABLE, "not in time"
        read = []
        for gone, leader in ((first, second), (second, third)):
            gone.kill()
            cluster.notice_death(gone)
            cluster.pass_ms(1000)
            assert cluster.leader(topic=OFFSETS_TOPIC) is leader
            read.append(committed(cluster, leader))
        assert read == ([6, 5] if is_mutant else [None, None])
        cluster.network.heal()
        first.start()
        cluster.until(lambda: len(cluster.state(topic=OFFSETS_TOPIC).isr) == 2)
        assert committed(cluster, third) == 5


def commit(cluster: Cluster, node: Node, offset: int) -> int:
    part = offset_commit.OffsetCommitRequestPartition(0, offset, -1, "")
    topic_id = cluster.log.image.topics_by_name["t"].id
    topic = offset_commit.OffsetCommitRequestTopic(topic_id=topic_id, partitions=[part])
    request = offset_commit.Request("g", topics=[topic])
    answer = cluster.ask(node, request, offset_commit.Response)
    code: int = answer.topics[0].partitions[0].error_code
    return code


def committed(cluster: Cluster, node: Node) -> int | None:
    """The offset that the coordinator tells; None if it does not."""
    request = offset_fetch.Request(groups=[offset_fetch.OffsetFetchRequestGroup("g", topics=None)])
    (found,) = cluster.ask(node, request, offset_fetch.Response).groups
    if found.error_code:
        assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        return None
    offset: int = found.topics[0].partitions[0].committed_offset
    return offset
