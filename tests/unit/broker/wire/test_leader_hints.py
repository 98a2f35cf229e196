"""Whoever asks one that does not lead is told who does, and where that is."""

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import fetch, produce
from tests.unit.broker.replicating import PORT, Cluster, Node, produced, replicating


def write(cluster: Cluster, node: Node) -> produce.Response:
    request = produced(cluster.log.image.topics_by_name["t"].id, (b"v",), -1, 0, 5000)
    response = cluster.ask(node, request, produce.Response)
    assert isinstance(response, produce.Response)
    return response


def check_names_leader(cluster: Cluster, response: produce.Response) -> None:
    part = response.responses[0].partition_responses[0]
    assert part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    state, leader = cluster.state(), cluster.leader()
    named = part.current_leader
    assert (named.leader_id, named.leader_epoch) == (leader.number, state.leader_epoch)
    (where,) = response.node_endpoints
    assert (where.node_id, where.host, where.port) == (leader.number, leader.host, PORT)
    assert where.rack == f"r{leader.number}"


def test_a_follower_names_the_leader_to_producers() -> None:
    with replicating() as cluster:
        cluster.topic()
        check_names_leader(cluster, write(cluster, cluster.followers()[0]))
        assert write(cluster, cluster.leader()).node_endpoints == []


def test_who_waited_for_replicas_of_a_leader_that_is_none_any_more_is_told_the_new_one() -> None:
    """It was on the fast way, whose answers are made beforehand."""
    with replicating() as cluster:
        cluster.topic()
        before = cluster.leader()
        assert write(cluster, before).responses[0].partition_responses[0].error_code == 0
        for node in cluster.followers():
            cluster.network.clog(node.host, 200_000_000)

        async def move() -> produce.Response:
            connection = await cluster.connection(before)
            topic_id = cluster.log.image.topics_by_name["t"].id
            request = produced(topic_id, (b"v",), -1, 0, 5000)
            answer = connection.send(request, produce.Response)
            cluster.loop.call_later(0.02, cluster.deny, before)
            return await connection.wait(answer, 5000)

        response = cluster.run(move())
        assert cluster.leader() is not before
        check_names_leader(cluster, response)


def test_consumers_are_told_as_well() -> None:
    with replicating() as cluster:
        cluster.topic(factor=2)
        leader = cluster.leader()
        state = cluster.state()
        stranger = next(n for n in cluster.nodes.values() if n.number not in state.replicas)
        asked = fetch.FetchPartition(partition=0, partition_max_bytes=1 << 20)
        topic_id = cluster.log.image.topics_by_name["t"].id
        request = fetch.Request(topics=[fetch.FetchTopic(topic_id=topic_id, partitions=[asked])])
        response = cluster.ask(stranger, request, fetch.Response)
        part = response.responses[0].partitions[0]
        assert part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert part.current_leader.leader_id == leader.number
        assert [n.host for n in response.node_endpoints] == [leader.host]
