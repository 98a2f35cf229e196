"""Metadata that any node has known counts, with its node down or its decision not committed."""

from types import SimpleNamespace
from typing import Any

from ottla.metadata.image.cluster import RECOVERING
from ottla.metadata.image.image import ClusterImage
from ottla.model.types import Offset, TopicPartition
from ottla.protocol.metadata_records import PartitionRecord, TopicRecord
from ottla.simulation.invariants.known_metadata import KnownMetadata

TOPIC = b"t" * 16


def image(offset: Offset, isr: list[int]) -> ClusterImage:
    made = ClusterImage()
    made.apply(offset - 1, TopicRecord("t", TOPIC))
    made.apply(
        offset,
        PartitionRecord(partition_id=0, topic_id=TOPIC, replicas=[1, 2, 3], isr=isr, leader=isr[0]),
    )
    return made


def node(
    committed: ClusterImage, decided: ClusterImage | None = None, hosted: list[Any] | None = None
) -> Any:  # noqa: ANN401
    active = None if decided is None else SimpleNamespace(controller=SimpleNamespace(image=decided))
    log = SimpleNamespace(is_open=True)
    commits = SimpleNamespace(active=active)
    driver = SimpleNamespace(image=committed, commits=commits, log=log)
    partitions = SimpleNamespace(all=lambda: hosted or [])
    return SimpleNamespace(latest=SimpleNamespace(quorum=driver, partitions=partitions))


def known(*machines: Any) -> tuple[KnownMetadata, Any]:  # noqa: ANN401
    nodes = SimpleNamespace(all=list(machines))
    metadata = KnownMetadata(nodes)  # type: ignore[arg-type]
    metadata.look()
    return metadata, nodes


def test_keepers_are_those_of_the_newest_metadata_even_when_its_node_is_down() -> None:
    metadata, nodes = known(node(image(5, [1, 2, 3])), node(image(9, [3])))
    nodes.all[1].latest = None
    metadata.look()
    assert metadata.keepers() == [{3}]


def test_keepers_name_a_decision_that_is_not_committed() -> None:
    metadata, nodes = known(node(image(5, [1, 2, 3]), decided=image(7, [2])))
    assert metadata.keepers() == [{1, 2, 3}, {2}]
    nodes.all[0].latest = None
    metadata.look()
    assert metadata.keepers() == [{1, 2, 3}, {2}]


def test_a_decision_counts_no_more_when_metadata_beyond_it_is_committed() -> None:
    metadata, nodes = known(node(image(5, [1, 2, 3]), decided=image(7, [2])))
    nodes.all.append(node(image(7, [1, 3])))
    metadata.look()
    assert metadata.keepers() == [{1, 3}]


def test_two_decisions_at_one_offset_both_count() -> None:
    metadata, _ = known(
        node(image(5, [1, 2, 3]), decided=image(7, [2])),
        node(image(5, [1, 2, 3]), decided=image(7, [3])),
    )
    assert sorted(map(sorted, metadata.keepers())) == [[1, 2, 3], [2], [3]]


def test_an_isr_that_a_leader_has_proposed_counts_until_the_partition_has_another_epoch() -> None:
    leader = SimpleNamespace(_pending=SimpleNamespace(isr=[(1, 7)]))
    led = SimpleNamespace(name=TopicPartition("t", 0), topic_id=TOPIC, leader=leader)
    metadata, nodes = known(node(image(5, [1, 2, 3]), hosted=[led]))
    assert metadata.keepers() == [{1, 2, 3}, {1}]
    nodes.all[0].latest = None  # Its proposal may still arrive.
    assert metadata.keepers() == [{1, 2, 3}, {1}]
    newer = image(9, [1, 2])
    state = newer.topics_by_id[TOPIC].partitions[0]
    newer.topics_by_id[TOPIC].partitions[0] = state._replace(partition_epoch=1)
    nodes.all.append(node(newer))
    metadata.look()
    assert metadata.keepers() == [{1, 2}]


def test_an_unclean_election_is_told_once_for_each_leader_epoch() -> None:
    told: list[tuple[TopicPartition, int]] = []
    metadata, nodes = known(node(image(5, [1, 2, 3])))
    metadata.on_unclean = lambda place, _, epoch: told.append((place, epoch))
    for offset, epoch in ((7, 1), (9, 1), (11, 2)):
        recovering = image(offset, [2])
        topic = recovering.topics_by_name["t"]
        topic.partitions[0] = topic.partitions[0]._replace(
            leader_recovery_state=RECOVERING, leader_epoch=epoch
        )
        nodes.all.append(node(recovering))
        metadata.look()
    assert told == [(TopicPartition("t", 0), 1), (TopicPartition("t", 0), 2)]
