"""Every request to another controller ends once: answered, closed or silent."""

import asyncio
from typing import Any

from ottla.broker.controller.quorum_peers import QuorumPeers
from ottla.model.types import NodeId
from ottla.protocol.messages import vote
from ottla.quorum.effects import Send
from ottla.quorum.log_view import OffsetAndEpoch
from ottla.quorum.messages import vote_request
from ottla.quorum.voters import Address, ReplicaKey
from tests.unit.broker.quorum_cluster import CLUSTER, Cluster, cluster_of


def asked(
    cluster: Cluster, address: Address, outcomes: list[str] | None = None, of: str = CLUSTER
) -> list[Any]:
    """The response to a vote request of a cluster, or why there is none; `outcomes` in words."""
    ends: list[Any] = []
    one, other = ReplicaKey(NodeId(9), b"9" * 16), ReplicaKey(NodeId(1), bytes(16))
    request = vote_request(of, 0, one, other, OffsetAndEpoch(0, 0), pre_vote=True)

    async def work() -> None:
        peers = QuorumPeers(
            cluster.network.host("client"),
            500,
            lambda _, response: ends.append(response),
            lambda _, is_closed: ends.append(is_closed),
        )
        peers.send(Send(NodeId(1), address, request))
        await asyncio.sleep(3)
        if outcomes is not None:
            outcomes.extend(peers.outcomes())
        peers.close()

    cluster.run(work())
    return ends


def test_a_node_that_lives_answers() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        (response,) = asked(cluster, Address("n1", 9093))
        assert isinstance(response, vote.Response)


def test_a_node_whose_process_is_gone_refuses_at_once() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        cluster.nodes[1].kill()
        assert asked(cluster, Address("n1", 9093)) == [True]


def test_outcome_names_the_address_and_its_answer_or_failure() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        cluster.nodes[2].kill()
        foreign: list[str] = []
        refused: list[str] = []
        asked(cluster, Address("n1", 9093), foreign, of="another")
        asked(cluster, Address("n2", 9093), refused)
        assert foreign == ["n1:9093 answers INCONSISTENT_CLUSTER_ID"]
        (sentence,) = refused
        assert sentence.startswith("cannot connect to n2:9093")
