"""OffsetDelete through a broker."""

import time

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import offset_delete as wire
from tests.unit.broker.grouping import QUICK, commit, fetch, find
from tests.unit.broker.serving import World, serving
from tests.unit.groups.driving import GROUP

Topic, Part = wire.OffsetDeleteRequestTopic, wire.OffsetDeleteRequestPartition


def test_offsets_are_forgotten_and_what_does_not_exist_is_refused() -> None:
    with serving(**QUICK) as world:
        world.topic("t")
        find(world)
        commit(world, 5)
        request = wire.Request(GROUP, [Topic("t", [Part(0), Part(9)]), Topic("u", [Part(0)])])
        answer = world.client().ask(request)
        codes = sorted((t.name, p.partition_index, p.error_code) for t in answer.topics
                       for p in t.partitions)  # fmt: skip
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert codes == [("t", 0, 0), ("t", 9, unknown), ("u", 0, unknown)]
        assert fetch(world) == (-1, 0)


def test_a_group_that_nobody_knows_is_not_found() -> None:
    with serving(**QUICK) as world:
        world.topic("t")
        find(world)
        answer = world.client().ask(wire.Request("x", [Topic("t", [Part(0)])]))
        assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_partitions_that_are_named_often_cost_linear_time_and_one_record() -> None:
    with serving(**QUICK) as world:
        world.topic("t")
        find(world)
        commit(world, 5)
        partition = world.broker.partitions.led("__consumer_offsets", bytes(16), _index(world))
        before = partition.log.end_offset
        parts = [Part(0)] * 3000 + [Part(9)] * 3000
        began = time.process_time()
        answer = world.client().ask(wire.Request(GROUP, [Topic("t", parts)]))
        assert time.process_time() - began < 2  # Each with each takes three times that.
        assert [len(topic.partitions) for topic in answer.topics] == [6000]
        assert partition.log.end_offset == before + 1


def _index(world: World) -> int:
    return world.broker.groups.partition_of(GROUP)
