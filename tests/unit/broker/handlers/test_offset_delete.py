"""OffsetDelete through a broker."""

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import offset_delete as wire
from tests.unit.broker.grouping import QUICK, commit, fetch, find
from tests.unit.broker.serving import serving
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
