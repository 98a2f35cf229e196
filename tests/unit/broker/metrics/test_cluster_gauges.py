"""What the active controller counts of the whole cluster."""

from dataclasses import dataclass

from ottla.broker.metrics.cluster_gauges import ClusterGauges
from ottla.broker.metrics.metrics import Metrics
from ottla.metadata.image.delta import ImageDelta
from ottla.metadata.image.image import ClusterImage
from ottla.model.types import NodeId
from tests.unit.broker.replicating import replicating
from tests.unit.metadata.controller_driver import ControllerDriver


@dataclass
class Seen:
    image: ClusterImage
    is_active_controller: bool


class Watched:
    def __init__(self, *, is_leader: bool) -> None:
        self.deciding = ControllerDriver(brokers=2)
        self.metrics = Metrics()
        self.gauges = ClusterGauges(Seen(self.deciding.image, is_leader), self.metrics)
        self.gauges.add()
        self.deciding.create("alone", 1, 1)
        self.deciding.create("t", 2, 2)

    def fence(self, node: int) -> ImageDelta:
        self.deciding.image.take_delta()
        self.deciding.heartbeat(node, want_fence=True)
        return self.deciding.image.take_delta()

    def values(self) -> dict[str, str]:
        lines = [line.split() for line in self.metrics.as_text().splitlines() if line[0] != "#"]
        return {name: value for name, value in lines if "{" not in name}


def test_the_active_controller_shows_who_is_away_and_what_nobody_leads() -> None:
    watched = Watched(is_leader=True)
    alone = watched.deciding.image.topics_by_name["alone"].partitions[0].leader
    led = [
        partition.leader
        for partition in watched.deciding.image.topics_by_name["t"].partitions.values()
    ]
    assert watched.values()["ottla_offline_partitions"] == "0"
    watched.gauges.image_changed(watched.fence(alone))
    values = watched.values()
    assert values["ottla_active_controller"] == "1"
    assert values["ottla_offline_partitions"] == "1"
    assert values["ottla_fenced_brokers"] == "1"
    assert values["ottla_leader_elections"] == str(led.count(alone))


def test_every_other_node_shows_nothing_of_it() -> None:
    watched = Watched(is_leader=False)
    watched.gauges.image_changed(watched.fence(1))
    shown = {name: value for name, value in watched.values().items() if "bytes" not in name}
    del shown["ottla_protocol_errors_total"], shown["ottla_server_errors_total"]
    assert set(shown.values()) == {"0"}


def test_a_follower_tells_how_much_it_lacks() -> None:
    with replicating(brokers=2) as cluster:
        cluster.topic(factor=2)
        cluster.produce(cluster.leader(), b"1", b"2")
        cluster.pass_ms(600)
        (node,) = cluster.followers()
        follower = node.partition().follower
        assert follower is not None
        assert follower.leader_high_watermark == follower.fetch_offset == 2
        assert node.number != cluster.leader().number
        assert NodeId(node.number) in cluster.state().isr
