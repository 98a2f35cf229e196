"""What a client remembers of the cluster."""

import pytest

from ottla.client.errors import Refused
from ottla.client.metadata import Metadata, UnknownPartition
from ottla.env.network import Address
from ottla.model.types import NodeId
from ottla.protocol.messages import metadata as wire


def answer(error_code: int = 0, name: str = "t") -> wire.Response:
    partitions = [
        wire.MetadataResponsePartition(0, 0, 1),
        wire.MetadataResponsePartition(5, 1, -1),
    ]
    return wire.Response(
        brokers=[wire.MetadataResponseBroker(1, "a", 9092, "r1")],
        cluster_id="c",
        controller_id=1,
        topics=[wire.MetadataResponseTopic(error_code, name, b"i" * 16, partitions=partitions)],
    )


def test_it_takes_over_brokers_and_topics() -> None:
    known = Metadata()
    known.update(answer())
    assert known.nodes[NodeId(1)].address == Address("a", 9092)
    assert known.topics["t"].has_id
    assert known.topics["t"].led == [0]
    assert known.topics["t"].leader(0) == 1


def test_topics_that_an_answer_does_not_name_stay() -> None:
    known = Metadata()
    known.update(answer())
    known.update(answer(name="u"))
    assert set(known.topics) == {"t", "u"}


def test_a_topic_with_an_error_is_forgotten() -> None:
    known = Metadata()
    known.update(answer())
    known.update(answer(error_code=3))
    assert known.topics == {}


def test_a_partition_without_leader_may_have_one_later_and_a_missing_one_never() -> None:
    known = Metadata()
    known.update(answer())
    with pytest.raises(Refused) as refused:
        known.topics["t"].leader(1)
    assert refused.value.is_retriable
    with pytest.raises(UnknownPartition) as unknown:
        known.topics["t"].leader(2)
    assert not unknown.value.is_retriable
