import asyncio
from random import Random

from ottla.simulation.runs.running import new_loop
from ottla.simulation.world.network import SimulatedNetwork
from ottla.simulation.world.nodes import Nodes
from ottla.simulation.world.trace import Trace
from tests.unit.simulation.small import small_cluster


def make_nodes(brokers: int = 3) -> tuple[asyncio.AbstractEventLoop, Nodes]:
    loop = new_loop()
    network = SimulatedNetwork(loop, Random(1), Trace(lambda: loop.now_ns))
    return loop, Nodes(small_cluster(brokers=brokers), loop, network)


def test_all_nodes_are_of_one_cluster_and_one_of_them_leads_the_quorum() -> None:
    loop, nodes = make_nodes()
    loop.run_until_complete(nodes.wait_serving())
    brokers = [broker for _, broker in nodes.serving()]
    assert len(brokers) == 3
    assert len({broker.image.cluster_id for broker in brokers}) == 1
    assert sum(broker.quorum.is_leader for broker in brokers) == 1
    nodes.end()
    loop.close()


def test_the_least_number_of_in_sync_replicas_is_the_one_of_the_settings() -> None:
    loop, nodes = make_nodes()
    loop.run_until_complete(nodes.wait_serving())
    for _, broker in nodes.serving():
        assert broker.settings.min_insync_replicas == 2
        assert broker.image.config_of(4, "")["min.insync.replicas"] == "2"
    nodes.end()
    loop.close()


def test_of_five_nodes_three_vote() -> None:
    loop, nodes = make_nodes(brokers=5)
    loop.run_until_complete(nodes.wait_serving())
    roles = [broker.settings.is_controller for _, broker in nodes.serving()]
    assert roles == [True, True, True, False, False]
    nodes.end()
    loop.close()
