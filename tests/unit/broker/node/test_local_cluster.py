"""Several nodes on one machine are one cluster: each with its own disk, ports and settings."""

from random import Random

import pytest

from ottla.broker.node.local_cluster import LocalCluster
from ottla.broker.settings.properties import parse_properties
from ottla.broker.settings.settings import Settings
from ottla.metadata.image.snapshot_file import read_snapshot
from ottla.model.errors import FormatRefused
from ottla.model.types import WallTime
from ottla.quorum.voters import Voters
from ottla.simulation.world.disk import SimulatedDisk
from ottla.storage.checkpoint import replace_file
from ottla.storage.identity import read_meta


def cluster_of(count: int, data: str = "/data") -> LocalCluster:
    return LocalCluster.at(data, count, host="127.0.0.1", port=9092, rack="here")


def prepare(cluster: LocalCluster, disk: SimulatedDisk, **changes: str) -> list[str]:
    return cluster.prepare(disk, changes, WallTime(0), Random(1).randbytes)


def settings_of(cluster: LocalCluster, disk: SimulatedDisk) -> list[Settings]:
    texts = [disk.read(node.properties_file).decode() for node in cluster.nodes]
    return [
        Settings.load({item.key: item.value for item in parse_properties(text)}) for text in texts
    ]


@pytest.mark.parametrize(
    ("count", "voters", "replicas", "isr_min"), [(2, 1, 2, 1), (3, 3, 3, 2), (5, 3, 3, 2)]
)
def test_replicas_and_voters_follow_the_number_of_nodes(
    count: int, voters: int, replicas: int, isr_min: int
) -> None:
    disk, cluster = SimulatedDisk(Random(0)), cluster_of(count)
    prepare(cluster, disk)
    settings = settings_of(cluster, disk)
    assert [node.node_id for node in settings] == list(range(1, count + 1))
    assert sum("controller" in node.process_roles for node in settings) == voters
    assert all("broker" in node.process_roles for node in settings)
    for node in settings:
        assert node.default_replication_factor == replicas
        assert node.offsets_topic_replication_factor == replicas
        assert node.min_insync_replicas == isr_min
        assert len(node.controller_quorum_bootstrap_servers) == voters


def test_no_two_nodes_share_a_port_or_a_directory() -> None:
    cluster = cluster_of(4)
    ports = [port for node in cluster.nodes for port in (node.port, node.controller_port)]
    assert len(set(ports)) == 8
    assert ports[0] == 9092
    assert len({node.log_directory for node in cluster.nodes}) == 4
    assert cluster.bootstrap_servers.startswith("127.0.0.1:9092,127.0.0.1:9093,")


def test_all_directories_name_one_cluster_and_the_same_voters() -> None:
    disk, cluster = SimulatedDisk(Random(0)), cluster_of(3)
    prepare(cluster, disk)
    metas = [read_meta(disk, node.log_directory) for node in cluster.nodes]
    assert len({meta.cluster_id for meta in metas if meta is not None}) == 1
    found = []
    for node in cluster.nodes:
        path = (
            f"{node.log_directory}/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
        )
        record = read_snapshot(disk.read(path), path).voters
        assert record is not None
        found.append(Voters.from_record(record))
    assert found[0] == found[1] == found[2]
    assert [v.directory_id for v in found[0].by_id.values()] == [
        meta.directory_id for meta in metas if meta is not None
    ]


def test_preparing_again_changes_nothing_but_the_settings() -> None:
    disk, cluster = SimulatedDisk(Random(0)), cluster_of(3)
    assert len(prepare(cluster, disk)) == 3
    before = [read_meta(disk, node.log_directory) for node in cluster.nodes]
    assert prepare(cluster, disk, **{"num.partitions": "7"}) == []
    assert [read_meta(disk, node.log_directory) for node in cluster.nodes] == before
    assert {node.num_partitions for node in settings_of(cluster, disk)} == {7}


def test_grown_cluster_keeps_its_ports_and_voters_and_new_nodes_take_free_ports() -> None:
    disk = SimulatedDisk(Random(0))
    founded = cluster_of(3)
    prepare(founded, disk)
    stored = LocalCluster.stored(disk, "/data", rack="here")
    assert stored is not None
    grown = stored.grown_to(5)
    assert list(grown.nodes[:3]) == list(founded.nodes)
    assert [node.port for node in grown.nodes[3:]] == [9098, 9099]  # Controllers have 9095-9097.
    assert len(prepare(grown, disk)) == 2
    first, last = grown.nodes[0], grown.nodes[-1]
    old, new = read_meta(disk, first.log_directory), read_meta(disk, last.log_directory)
    assert old is not None
    assert new is not None
    assert new.cluster_id == old.cluster_id
    assert not disk.exists(f"{last.log_directory}/__cluster_metadata-0")
    settings = settings_of(grown, disk)
    assert ["controller" in node.process_roles for node in settings] == [True] * 3 + [False] * 2
    assert len({str(node.controller_quorum_bootstrap_servers) for node in settings}) == 1
    again = LocalCluster.stored(disk, "/data", rack="here")
    assert again is not None
    assert [node.port for node in again.nodes] == [node.port for node in grown.nodes]
    assert again.voters == founded.voters


def test_cluster_founded_with_two_nodes_keeps_one_voter_and_its_replication() -> None:
    disk = SimulatedDisk(Random(0))
    prepare(cluster_of(2), disk)
    stored = LocalCluster.stored(disk, "/data", rack="here")
    assert stored is not None
    grown = stored.grown_to(4)
    prepare(grown, disk)
    for node in settings_of(grown, disk):
        assert (node.default_replication_factor, node.min_insync_replicas) == (2, 1)
        assert len(node.controller_quorum_bootstrap_servers) == 1


def test_directory_without_nodes_stores_no_cluster() -> None:
    assert LocalCluster.stored(SimulatedDisk(Random(0)), "/data", rack="here") is None


def test_stored_settings_without_listeners_are_refused_by_name() -> None:
    disk = SimulatedDisk(Random(0))
    prepare(cluster_of(3), disk)
    replace_file(disk, "/data/node-2/server.properties", b"node.id=2\n")
    with pytest.raises(FormatRefused, match="listeners of node 2"):
        LocalCluster.stored(disk, "/data", rack="here")


def test_port_for_metrics_counts_up_from_the_first_node() -> None:
    disk, cluster = SimulatedDisk(Random(0)), cluster_of(3)
    prepare(cluster, disk, **{"ottla.metrics.listener": "127.0.0.1:9100"})
    listeners = [str(node.ottla_metrics_listener) for node in settings_of(cluster, disk)]
    assert listeners == ["127.0.0.1:9100", "127.0.0.1:9101", "127.0.0.1:9102"]


def test_a_voter_without_its_memory_does_not_come_back() -> None:
    disk, cluster = SimulatedDisk(Random(0)), cluster_of(3)
    prepare(cluster, disk)
    disk.rename(cluster.nodes[1].log_directory, f"{cluster.nodes[1].directory}/lost")
    with pytest.raises(FormatRefused, match="node 2 votes"):
        prepare(cluster, disk)


def test_what_holds_something_else_is_refused() -> None:
    disk = SimulatedDisk(Random(0))
    prepare(cluster_of(3), disk)
    with pytest.raises(FormatRefused, match="--brokers 3"):
        prepare(cluster_of(2), disk)
    stored = LocalCluster.stored(disk, "/data", rack="here")
    assert stored is not None
    with pytest.raises(FormatRefused, match="ottla brokers drain 3 --wait"):
        stored.grown_to(2)
    disk.make_directory("/single")
    disk.open("/single/meta.properties", create=True).append([b"version=1\n"])
    with pytest.raises(FormatRefused, match="single node"):
        prepare(cluster_of(3, "/single"), disk)
