"""OffsetFetch through a broker: one group or many, by name and by id, all or some."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import offset_fetch as wire
from tests.unit.broker.grouping import QUICK, commit, find
from tests.unit.broker.serving import serving
from tests.unit.groups.driving import GROUP

Topics, Group = wire.OffsetFetchRequestTopics, wire.OffsetFetchRequestGroup


@pytest.mark.parametrize("version", range(1, 8))
def test_one_group_in_every_old_version(version: int) -> None:
    with serving(**QUICK) as world:
        world.topic("t")
        find(world)
        commit(world, 5)
        asked = [wire.OffsetFetchRequestTopic("t", [0, 1])]
        answer = world.client().ask(wire.Request(GROUP, asked), version)
        found = [(p.partition_index, p.committed_offset) for p in answer.topics[0].partitions]
        assert found == [(0, 5), (1, -1)]
        if version >= 2:
            every = world.client().ask(wire.Request(GROUP, None), version)
            assert every.topics[0].partitions[0].committed_offset == 5


@pytest.mark.parametrize("version", range(1, 8))
def test_an_old_client_hears_of_an_error_where_it_looks(version: int) -> None:
    with serving(**QUICK) as world:
        asked = [wire.OffsetFetchRequestTopic("t", [0])]
        answer = world.client().ask(wire.Request(GROUP, asked), version)
        if version >= 2:
            assert answer.error_code == ErrorCode.NOT_COORDINATOR
        else:
            part = answer.topics[0].partitions[0]
            assert (part.error_code, part.committed_offset) == (ErrorCode.NOT_COORDINATOR, -1)


def test_many_groups_at_once() -> None:
    with serving(**QUICK) as world:
        world.topic("t")
        find(world)
        commit(world, 5, group="a")
        commit(world, 6, group="b")
        groups = [Group(name, topics=None) for name in ("a", "b", "none")]
        answer = world.client().ask(wire.Request(groups=groups), 8)
        found = {g.group_id: [t.partitions[0].committed_offset for t in g.topics] for g in
                 answer.groups}  # fmt: skip
        assert found == {"a": [5], "b": [6], "none": []}


def test_topics_by_their_ids() -> None:
    with serving(**QUICK) as world:
        topic_id = world.topic("t")
        find(world)
        commit(world, 5)
        topics = [Topics("", topic_id, [0]), Topics("", b"?" * 16, [0])]
        asked = wire.Request(groups=[Group(GROUP, topics=topics), Group(GROUP, topics=None)])
        some, every = world.client().ask(asked).groups
        assert [(t.topic_id, t.partitions[0].committed_offset) for t in some.topics] == [
            (topic_id, 5),
            (b"?" * 16, -1),
        ]
        assert some.topics[1].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
        assert [t.topic_id for t in every.topics] == [topic_id]


def test_a_group_named_too_often_is_answered_ten_times() -> None:
    with serving(**QUICK) as world:
        world.topic("t")
        find(world)
        commit(world, 5)
        groups = [Group(GROUP, topics=[Topics("t", partition_indexes=[0])]) for _ in range(12)]
        answer = world.client().ask(wire.Request(groups=groups), 8)
        offsets = [g.topics[0].partitions[0].committed_offset for g in answer.groups if g.topics]
        assert offsets == [5] * 10
        assert [g.error_code for g in answer.groups[10:]] == [ErrorCode.INVALID_REQUEST] * 2
