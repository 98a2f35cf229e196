"""ListPartitionReassignments through brokers."""

from ottla.protocol.messages import alter_partition_reassignments
from ottla.protocol.messages import list_partition_reassignments as wire
from tests.unit.broker.replicating import replicating
from tests.unit.broker.serving import serving


def test_where_nothing_moves_nothing_is_listed() -> None:
    with serving() as world:
        world.topic()
        assert world.client().ask(wire.Request(topics=None)).topics == []


def test_a_move_is_listed_while_it_lasts() -> None:
    with replicating() as cluster:
        cluster.topic(factor=1)
        cluster.produce(cluster.leader(), b"a")
        here, other = (
            cluster.leader(),
            next(n for n in cluster.nodes if n != cluster.leader().number),
        )
        cluster.network.clog(cluster.nodes[other].host, 1_000_000_000)
        part = alter_partition_reassignments.ReassignablePartition(0, [other])
        topic = alter_partition_reassignments.ReassignableTopic("t", [part])
        cluster.log.decide(alter_partition_reassignments.Request(topics=[topic]))
        (listed,) = cluster.ask(here, wire.Request(topics=None), wire.Response).topics
        (moving,) = listed.partitions
        assert (moving.adding_replicas, moving.removing_replicas) == ([other], [here.number])
        cluster.until(lambda: cluster.state().replicas == (other,))
        assert cluster.ask(here, wire.Request(topics=None), wire.Response).topics == []
