"""A broker as a whole: it starts, stops, starts again, and ends when it cannot go on."""

import asyncio
import errno
from collections.abc import Mapping

import pytest

from ottla.broker.partitions.checkpoint_writer import CheckpointWriter
from ottla.broker.partitions.log_directories import LogDirectories
from ottla.broker.wire.memory import SHARED_BYTES
from ottla.model.types import Offset, TopicPartition
from ottla.protocol.messages import create_topics
from tests.unit.broker.requests import fetch_request, only, values_of, write
from tests.unit.broker.serving import BROKER_RESOURCE, CONTROLLER, LISTENER, World, serving


def test_a_clean_stop_needs_no_recovery() -> None:
    with serving() as world:
        world.topic()
        write(world, b"a", b"b")
        world.stop()
        assert world.disk.exists("/data/.kafka_cleanshutdown")
        assert not world.disk.locked
        epoch = world.broker.lifecycle.broker_epoch
        world.start()
        assert not world.disk.exists("/data/.kafka_cleanshutdown")
        assert world.broker.directories.identities.previous_broker_epoch == epoch
        assert write(world, b"c") == 2


def test_a_kill_loses_nothing_that_was_answered() -> None:
    with serving() as world:
        world.topic()
        for number in range(5):
            write(world, b"%d" % number)
            world.run(world.broker.abort())
            world.disk.kill()
            world.start()
        part = only(world.client().ask(fetch_request(("t", 0, 0)), 12))
        assert values_of(part.records) == [b"%d" % number for number in range(5)]


def test_every_listener_has_its_address() -> None:
    with serving() as world:
        assert world.broker.addresses[LISTENER].port == 9092
        assert world.broker.addresses[CONTROLLER].port == 9093
        assert set(world.broker.dispatchers) == {LISTENER, CONTROLLER}


@pytest.mark.parametrize(
    ("operation", "path"), [("append", "__cluster_metadata"), ("read", "__cluster_metadata")]
)
def test_a_start_that_fails_leaves_nothing_held(operation: str, path: str) -> None:
    with serving() as world:
        world.topic()
        world.stop()
        world.disk.fail(operation, errno.EIO, path_contains=path)
        with pytest.raises(OSError, match="simulated failure"):
            world.start()
        assert not world.disk.locked
        assert not world.network._listening
        world.disk._failures.clear()
        world.start()
        assert write(world, b"a") == 0


def test_two_brokers_do_not_share_a_directory() -> None:
    with serving() as world:
        other = World({})
        other.disk = world.disk
        with pytest.raises(Exception, match="in use by another broker"):
            other.start()
        other.loop.close()
        world.topic()
        assert write(world, b"a") == 0


def test_work_that_fails_beside_the_requests_ends_the_broker() -> None:
    async def fails() -> None:
        await asyncio.sleep(0)
        raise ZeroDivisionError

    with serving() as world:
        world.broker.spawn(fails())
        world.settle()
        assert isinstance(world.broker.failed.exception(), ZeroDivisionError)


def test_exception_of_the_flush_ends_the_broker_whichever_entry_called_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A connection that finds no room in the shared buffer flushes: the error is not its own."""

    def fails() -> None:
        raise ValueError("while flushing")

    with serving() as world:
        monkeypatch.setattr(world.broker.partitions, "flush", fails)
        world.broker.memory.place = SHARED_BYTES
        with pytest.raises(ValueError, match="while flushing"):
            world.client().connection.buffer()
        assert isinstance(world.broker.failed.exception(), ValueError)
        monkeypatch.undo()


def test_a_metadata_log_that_cannot_be_written_ends_the_broker() -> None:
    with serving() as world:
        world.disk.fail("append", errno.EIO, path_contains="__cluster_metadata")
        wanted = create_topics.CreatableTopic("t", 1, 1)
        world.client().send(create_topics.Request(topics=[wanted]))
        world.settle()
        assert isinstance(world.broker.failed.exception(), OSError)


def test_configs_of_all_brokers_and_of_this_one_are_taken_over() -> None:
    with serving() as world:
        broker = world.broker
        default = broker.settings.message_max_bytes
        world.configure("", "message.max.bytes", 1000, BROKER_RESOURCE)
        assert broker.settings.message_max_bytes == 1000
        world.configure("1", "message.max.bytes", 2000, BROKER_RESOURCE)
        assert broker.settings.message_max_bytes == 2000
        world.restart()
        assert world.broker.settings.message_max_bytes == 2000
        world.configure("1", "message.max.bytes", None, BROKER_RESOURCE)
        assert world.broker.settings.message_max_bytes == 1000
        world.configure("", "message.max.bytes", None, BROKER_RESOURCE)
        assert world.broker.settings.message_max_bytes == default


def test_a_timer_that_fails_is_told_and_a_broken_invariant_ends_the_broker(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail() -> None:
        raise KeyError("nobody")

    def break_invariant() -> None:
        raise AssertionError("this cannot be")

    with serving() as world:
        world.broker.call_later(10, fail)
        world.pass_ms(20)
        assert world.broker.metrics.server_errors == 1
        assert "a timer failed" in caplog.text
        assert not world.broker.failed.done()
        world.broker.call_later(10, break_invariant)
        world.pass_ms(20)
        assert isinstance(world.broker.failed.exception(), AssertionError)


@pytest.mark.parametrize("operation", ["append", "sync"])
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("path", ["__cluster_metadata", "/t-0", "checkpoint", "cleanshutdown"])
def test_a_stop_that_fails_lets_go_and_loses_nothing(operation: str, error: int, path: str) -> None:
    with serving() as world:
        world.topic()
        write(world, b"a")
        world.disk.fail(operation, error, path_contains=path)
        world.stop()
        assert not world.disk.locked
        world.disk._failures.clear()
        world.start()
        assert write(world, b"b") == 1


def test_a_stop_waits_for_a_checkpoint_that_a_worker_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else an older one might replace that of the clean shutdown."""
    wait_idle, order = CheckpointWriter.wait_idle, []
    close = LogDirectories.close

    async def note_wait(writer: CheckpointWriter) -> None:
        await wait_idle(writer)
        order.append("idle")

    def note_close(
        directories: LogDirectories, broker_epoch: int, marks: Mapping[TopicPartition, Offset]
    ) -> None:
        order.append("close")
        close(directories, broker_epoch, marks)

    with serving() as world:
        monkeypatch.setattr(CheckpointWriter, "wait_idle", note_wait)
        monkeypatch.setattr(LogDirectories, "close", note_close)
        world.stop()
        assert order == ["idle", "close"]
