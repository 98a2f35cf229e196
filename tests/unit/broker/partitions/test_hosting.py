"""New partitions that are many at once: the rest is hosted while everyone else is served."""

import asyncio
import errno
from collections.abc import Callable
from typing import Any

import pytest

from ottla.broker.partitions.hosting import AT_ONCE_MAX, WAIT_SECONDS_MAX
from ottla.broker.partitions.log_directories import LogDirectories, _make_files
from ottla.env.workers import InlineWorkers
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Uuid, uuid_text
from ottla.protocol.messages import api_versions, create_topics, metadata
from tests.unit.broker import grouping
from tests.unit.broker.replicating import replicating
from tests.unit.broker.requests import batch, only, produce_request, write
from tests.unit.broker.serving import CONTROLLER, HeldWorkers, World, serving

MANY = AT_ONCE_MAX + 40
LAST = MANY - 1

# ruff: noqa: ANN401  Work gives back anything.


class SlowFiles(HeldWorkers):
    """Workers that hold up new files, if told so, and nothing else."""

    async def run(self, work: Callable[..., Any], *arguments: object) -> Any:
        if work is _make_files:
            return await super().run(work, *arguments)
        return await InlineWorkers.run(self, work, *arguments)


class SlowRemoval(SlowFiles):
    """The same, and the removal of files that were made and are not needed is held up too."""

    may_remove: asyncio.Event

    async def run(self, work: Callable[..., Any], *arguments: object) -> Any:
        if work.__name__ == LogDirectories._remove_remains.__name__:
            await self.may_remove.wait()
        return await super().run(work, *arguments)


def asked(world: World, name: str = "t", partitions: int = MANY) -> tuple[Any, int]:
    """A client that has asked for a topic, and its question, while new files are held up."""
    world.workers.__class__ = SlowFiles
    world.workers.is_holding = True
    client = world.client()
    wanted = create_topics.CreatableTopic(name, partitions, 1)
    number = client.send(create_topics.Request(topics=[wanted], timeout_ms=1000))
    world.until(lambda: world.workers.waiting > 0)
    world.settle()
    return client, number


def let_go(world: World) -> None:
    world.workers.is_holding = False
    world.until(lambda: not world.broker.partitions.hosting._is_running)


def refusal(world: World, index: int = LAST) -> ErrorCode:
    with pytest.raises(Refusal) as refused:
        world.broker.partitions.led("t", bytes(16), index)
    return refused.value.code


def id_on_disk(world: World, index: int, directory: str = "/data") -> str:
    content = world.disk.read(f"{directory}/t-{index}/partition.metadata")
    return content.decode().splitlines()[1].removeprefix("topic_id: ")


def topic_id(world: World) -> Uuid:
    return world.broker.image.topics_by_name["t"].id


def test_others_are_served_while_many_partitions_are_made() -> None:
    with serving() as world:
        client, number = asked(world)
        assert world.client().ask(api_versions.Request(), 2).error_code == 0
        assert len(world.broker.partitions) == 0  # The turn that brought them made no files.
        assert refusal(world) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        answer = only(world.client().ask(produce_request(batch(b"x"), "t", LAST), 12))
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert not client.has_answer(number)
        world.workers.is_holding = False
        assert client.answer_to(number).topics[0].error_code == 0
        assert len(world.broker.partitions) == MANY
        assert write(world, b"a", partition=LAST) == 0
        assert id_on_disk(world, LAST) == uuid_text(topic_id(world))


def test_a_few_are_not_put_off_though_others_wait() -> None:
    with serving() as world:
        asked(world)
        world.topic("u", 3)
        assert world.partition("u", 2).log.end_offset == 0
        let_go(world)


def test_the_answer_does_not_wait_for_ever() -> None:
    with serving() as world:
        client, number = asked(world)
        world.pass_ms(int(WAIT_SECONDS_MAX * 1000) + 10)
        assert client.answer_to(number).topics[0].error_code == 0
        assert refusal(world) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        let_go(world)
        assert write(world, b"a", partition=LAST) == 0


def test_a_broker_that_passed_it_on_is_answered_at_once() -> None:
    with serving() as world:
        world.workers.__class__ = SlowFiles
        world.workers.is_holding = True
        before = world.now
        wanted = create_topics.CreatableTopic("t", MANY, 1)
        request = create_topics.Request(topics=[wanted], timeout_ms=1000)
        assert world.client(CONTROLLER).ask(request).topics[0].error_code == 0
        assert world.now - before < 1000
        let_go(world)


def test_a_topic_that_is_deleted_meanwhile_leaves_nothing() -> None:
    with serving() as world:
        asked(world)
        world.delete("t")
        let_go(world)
        assert len(world.broker.partitions) == 0
        world.pass_ms(70_000)
        assert not [name for name in world.disk.list("/data") if name.startswith("t-")]


def test_one_of_the_same_name_begins_when_the_files_of_the_other_are_gone() -> None:
    with serving() as world:
        asked(world)
        old = topic_id(world)
        world.delete("t")
        wanted = create_topics.CreatableTopic("t", MANY, 1)
        client = world.client()
        number = client.send(create_topics.Request(topics=[wanted], timeout_ms=1000))
        world.pass_ms(100)
        world.workers.is_holding = False
        assert client.answer_to(number).topics[0].error_code == 0
        assert topic_id(world) != old
        for index in range(MANY):
            assert world.partition("t", index).topic_id == topic_id(world)
            assert id_on_disk(world, index) == uuid_text(topic_id(world))
        world.restart()
        assert len(world.broker.partitions) == MANY


def test_one_of_the_same_name_does_not_begin_while_a_worker_removes_files() -> None:
    with serving() as world:
        hosting = world.broker.partitions.hosting
        hosting.at_once_max = 0
        asked(world, partitions=2)
        world.delete("t")
        world.workers.__class__ = SlowRemoval
        assert isinstance(world.workers, SlowRemoval)
        world.workers.may_remove = asyncio.Event()
        world.workers.is_holding = False
        world.pass_ms(10)  # The files are made; their removal is held up.
        hosting.at_once_max = AT_ONCE_MAX
        client = world.client()
        wanted = create_topics.CreatableTopic("t", 2, 1)
        number = client.send(create_topics.Request(topics=[wanted], timeout_ms=1000))
        world.pass_ms(10)
        world.workers.may_remove.set()
        assert client.answer_to(number).topics[0].error_code == 0
        assert write(world, b"a", partition=1) == 0
        assert world.disk.exists(world.partition("t", 1).log.segments[0].log_path)
        world.restart()
        assert world.partition("t", 1).log.end_offset == 1


def test_what_changes_meanwhile_holds_for_those_that_waited() -> None:
    with serving() as world:
        asked(world)
        world.configure("t", "retention.ms", 1234)
        world.workers.is_holding = False
        world.grow("t", MANY + 1)
        assert world.partition("t", LAST).log.config.retention_ms == 1234
        assert world.partition("t", MANY).log.config.retention_ms == 1234


def test_the_controller_learns_where_those_lie_that_waited() -> None:
    with serving(("/a", "/b")) as world:
        world.topic("t", MANY)
        world.settle()
        states = world.broker.image.topics_by_name["t"].partitions
        for index, state in states.items():
            meta = world.broker.directories.of(world.partition("t", index).log).meta
            assert meta is not None
            assert state.directory_of(world.broker.node_id) == meta.directory_id
        held = [len(directory.logs) for directory in world.broker.directories.all()]
        assert held == [MANY // 2, MANY // 2]


def test_a_disk_that_fails_a_worker_loses_only_itself() -> None:
    with serving(("/a", "/b")) as world:
        asked(world)
        for _ in range(2):  # The worker meets it, then the loop.
            world.disk.fail("open", errno.EIO, path_contains="/b/t-71")
        let_go(world)
        world.settle()
        online = world.broker.directories.online()
        assert [directory.path for directory in online] == ["/a"]
        for index in range(71, MANY):
            assert world.partition("t", index).log.directory == f"/a/t-{index}"


def test_a_crash_between_files_and_log_leaves_an_empty_partition() -> None:
    with serving() as world:
        asked(world)
        world.workers.is_holding = False
        world.until(lambda: world.disk.exists(f"/data/t-{LAST}"))
        world.run(world.broker.abort())
        world.disk.kill()
        world.start()
        world.until(lambda: not world.broker.partitions.hosting._is_running)
        assert len(world.broker.partitions) == MANY
        assert write(world, b"a", partition=LAST) == 0


def test_a_group_finds_its_coordinator_among_many() -> None:
    with serving(**{**grouping.QUICK, "offsets_topic_num_partitions": MANY}) as world:
        world.topic("t", 1)
        for group in ("a", "b", "c", "d"):
            found = grouping.find(world, group)
            assert found.coordinators[0].error_code == 0
            assert grouping.commit(world, 5, group=group) == 0
            assert grouping.fetch(world, group=group) == (5, 0)


def test_a_topic_that_is_made_by_asking_can_be_written_at_once() -> None:
    with serving(num_partitions=MANY, auto_create_topics_enable="true") as world:
        topic = metadata.MetadataRequestTopic(name="t")
        answer = world.client().ask(metadata.Request(topics=[topic]))
        assert len(answer.topics[0].partitions) == MANY
        assert write(world, b"a", partition=LAST) == 0


def test_a_replica_that_waited_takes_the_role_that_it_has_by_then() -> None:
    with replicating(3) as cluster:
        workers = SlowFiles()
        for node in cluster.nodes.values():
            node.broker.partitions.hosting.at_once_max = 0
            node.broker.env.workers.run = workers.run  # type: ignore[method-assign]
        workers.is_holding = True
        cluster.topic("t")
        before = cluster.leader()
        cluster.deny(before)
        cluster.pass_ms(20)
        assert all(len(node.broker.partitions) == 0 for node in cluster.nodes.values())
        workers.is_holding = False
        cluster.until(lambda: all(len(n.broker.partitions) == 1 for n in cluster.nodes.values()))
        assert not before.partition().is_leader
        assert before.partition().leader_epoch == cluster.state().leader_epoch
        assert cluster.produce(cluster.leader(), b"a").error_code == 0
        cluster.until(lambda: before.values() == [b"a"])


def test_a_topic_that_is_made_again_begins_once_no_checkpoint_names_the_deleted_one() -> None:
    with serving() as world:
        world.topic("t")
        write(world, b"a")
        world.run(world.broker.partitions.checkpoint())
        world.disk.fail("append", errno.ENOSPC, path_contains="recovery-point")
        world.delete("t")
        world.settle()
        assert b"t 0 1" in world.disk.read("/data/replication-offset-checkpoint")
        world.broker.directories.check_space()
        world.topic("t")
        assert b"t 0 1" not in world.disk.read("/data/replication-offset-checkpoint")
        assert write(world, b"b") == 0
