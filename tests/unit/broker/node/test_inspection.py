"""Views of a broker: simulation and tests see its state through them, and change nothing."""

import asyncio
from collections.abc import Callable
from random import Random

from ottla.broker.node import inspection
from ottla.broker.node.broker import Broker
from ottla.client.admin import Admin
from ottla.client.cluster import Cluster
from ottla.client.producer import Producer
from ottla.groups.placement import OFFSETS_TOPIC
from ottla.simulation.runs.running import new_loop
from ottla.simulation.world.clock import VirtualClock
from ottla.simulation.world.network import SimulatedNetwork
from ottla.simulation.world.nodes import Nodes
from ottla.simulation.world.trace import Trace
from tests.unit.simulation.small import small_plan


def look(see: Callable[[Broker], None]) -> None:
    """See a broker that has acknowledged two records of topic `t`."""
    loop = new_loop()
    network = SimulatedNetwork(loop, Random(1), Trace(lambda: loop.now_ns))
    nodes = Nodes(small_plan(), loop, network)

    async def run() -> None:
        await nodes.wait_serving()
        host = network.host("client")
        cluster = Cluster(nodes.addresses, network=host, clock=VirtualClock(loop), source=Random(1))
        await Admin(cluster).create_topic("t", partitions=1)
        await Admin(cluster).create_topic(OFFSETS_TOPIC, partitions=2)
        async with Producer(cluster) as producer:
            for value in (b"one", b"two"):
                await (await producer.send("t", value, partition=0))
        await asyncio.sleep(0.1)
        (broker,) = (broker for _, broker in nodes.serving())
        see(broker)
        cluster.close()

    try:
        loop.run_until_complete(run())
    finally:
        nodes.end()
        loop.close()


def test_a_partition_shows_its_role_and_its_log() -> None:
    def see(broker: Broker) -> None:
        (view,) = [one for one in inspection.partitions(broker) if one.name == ("t", 0)]
        assert view.is_leader
        assert view.leader_epoch == view.last_epoch == 0
        assert view.topic_id == broker.image.topics_by_name["t"].id
        assert (view.log_start_offset, view.high_watermark, view.end_offset) == (0, 2, 2)
        assert view.staged_end == 2
        batches = list(view.batches(0, 2))
        assert sum(batch.size for batch in batches) == view.size_bytes
        assert [batch.last_offset for batch in view.batches(1, 2)] == [1]
        (again,) = [one for one in inspection.partitions(broker) if one.name == ("t", 0)]
        assert again.log_identity is view.log_identity

    look(see)


def test_the_only_node_leads_the_quorum_and_its_decisions_are_committed() -> None:
    def see(broker: Broker) -> None:
        view = inspection.quorum(broker)
        assert view is not None
        assert view.is_active_controller
        assert view.led_epoch == view.state.epoch
        assert list(view.voters.by_id) == [1]
        assert view.epoch_start_offset is not None
        assert view.high_watermark == view.end_offset
        assert view.is_settled
        assert view.log_start_offset == 0
        assert view.snapshot_ends == [] or view.snapshot_ends[0] <= view.end_offset
        batches = list(view.batches(0, view.end_offset))
        assert sum(batch.size for batch in batches) == view.log_size_bytes
        assert view.decided_image is not None
        assert view.decided_image.topics_by_name == view.image.topics_by_name

    look(see)


def test_no_quorum_is_seen_before_the_metadata_log_is_open() -> None:
    assert inspection.quorum(None) is None
    assert inspection.quorum(object()) is None  # type: ignore[arg-type]


def test_loaded_coordinators_are_seen_by_their_partition() -> None:
    def see(broker: Broker) -> None:
        found = list(inspection.coordinators(broker))
        assert sorted(one.partition for one in found) == [0, 1]
        assert all(one.machine.groups == {} for one in found)
        assert all(one.committed_end == one.high_watermark == 0 for one in found)

    look(see)
