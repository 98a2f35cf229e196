"""The committed image: from what we wrote, from the log, or from a leader's snapshot."""

import pytest

from ottla.broker.controller.active_controller import Written
from ottla.broker.controller.committed_image import CommittedImage
from ottla.broker.controller.metadata_log import MetadataLog
from ottla.metadata.image.batches import data_batches, encoded
from ottla.model.errors import Damaged
from ottla.protocol.metadata_records import PartitionChangeRecord, TopicRecord
from ottla.records.batch import Batch
from tests.unit.broker.driving import CLUSTER, Node

TOPICS = [TopicRecord(f"t{n}", bytes([n + 1]) * 16) for n in range(4)]


def loaded(*records: object) -> CommittedImage:
    node = Node()
    node.format()
    log = MetadataLog(node.env, node.settings)
    committed = CommittedImage(node.env, CLUSTER, log)
    committed.load()
    for record in records:
        values = [encoded([record], 30)]  # type: ignore[list-item]
        (data,) = data_batches(values, log.end_offset, 1, node.clock.wall())
        log.append(Batch(data), node.clock.wall())
    return committed


def names(committed: CommittedImage) -> list[str]:
    return sorted(committed.image.topics_by_name)


def test_the_image_holds_only_what_is_committed() -> None:
    committed = loaded(*TOPICS)
    assert names(committed) == []
    delta = committed.advance(2)
    assert [topic.name for topic in delta.created] == names(committed) == ["t0", "t1"]
    assert committed.image.offset == 1


def test_what_we_wrote_is_not_read_back_and_the_rest_is() -> None:
    committed = loaded(*TOPICS)
    mine = TopicRecord("mine", b"m" * 16)  # Not what the log has: so one sees where it came from.
    committed.advance(3, [Written(0, 1, [TOPICS[0]]), Written(2, 3, [mine])])
    assert names(committed) == ["mine", "t0", "t1"]
    committed.advance(4, [Written(2, 3, [mine])])
    assert names(committed) == ["mine", "t0", "t1", "t3"]


def test_a_record_that_cannot_be_is_damage() -> None:
    committed = loaded(TOPICS[0], PartitionChangeRecord(topic_id=b"x" * 16))
    with pytest.raises(Damaged, match="a topic that is not there"):
        committed.advance(2)
