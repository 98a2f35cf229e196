"""The broker for users' tests: one thread, one directory, no leftovers."""

import asyncio
import gc
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.client.errors import ClientError
from ottla.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def descriptors() -> set[int]:
    """Open descriptors, without the one used to list them."""
    return {number for number in map(int, os.listdir("/dev/fd")) if _is_open(number)}


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def test_produced_records_are_readable(broker: Broker) -> None:
    topic = broker.create_topic("orders", partitions=2, configs={"retention.ms": 60_000})
    broker.produce(topic, b"one", "two", None, key="k", headers=[("h", b"1")])
    broker.produce(topic, "three", partition=1)
    records = broker.records(topic)
    assert [record.value for record in records if record.key] == [b"one", b"two", None]
    assert {record.headers for record in records if record.key} == {(("h", b"1"),)}
    assert [record.value for record in records if not record.key] == [b"three"]
    assert "orders" in broker.topics()
    broker.delete_topic(topic)
    assert "orders" not in broker.topics()


def test_a_missing_topic_is_created_by_the_first_record(broker: Broker) -> None:
    broker.produce("made-by-itself", "value")
    assert [record.value for record in broker.records("made-by-itself")] == [b"value"]


def test_it_is_ready_quickly_and_leaves_nothing_behind() -> None:
    with Broker():
        pass  # One-time imports and caches are not counted.
    gc.collect()
    threads, files = set(threading.enumerate()), descriptors()
    begin = time.monotonic()
    with Broker() as broker:
        is_ready_after = time.monotonic() - begin
        broker.produce("topic", "value")
        data, address = Path(broker.data), (broker.host, broker.port)
        assert data.is_dir()
    assert is_ready_after < 1.0
    assert not data.exists()
    assert set(threading.enumerate()) == threads
    gc.collect()
    assert descriptors() <= files  # Leftovers of earlier tests may have been closed.
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(address, timeout=1)


def test_settings_are_given_by_kafkas_names_or_keywords() -> None:
    with Broker({"log.retention.ms": 1_000}, num_partitions=3, delete_topic_enable=False) as broker:
        broker.produce("wide", "value", partition=2)
        assert broker.records("wide")[0].partition == 2


def test_an_invalid_setting_is_reported_at_start() -> None:
    threads = set(threading.enumerate())
    with pytest.raises(Exception, match=r"num\.partitions"), Broker(num_partitions="many"):
        pass
    assert set(threading.enumerate()) == threads


@pytest.mark.parametrize("is_clean", [True, False], ids=["stopped", "killed"])
def test_data_and_port_survive_a_restart(is_clean: bool) -> None:
    with Broker() as broker:
        broker.produce("kept", "before")
        port = broker.port
        if is_clean:
            broker.stop()
        else:
            broker.kill()
        assert not broker.is_running
        broker.start()
        assert broker.port == port
        broker.produce("kept", "after")
        assert [record.value for record in broker.records("kept")] == [b"before", b"after"]
        broker.restart()
        assert len(broker.records("kept")) == 2


def test_data_can_be_kept(tmp_path: Path) -> None:
    with Broker(data=tmp_path) as broker:
        broker.produce("kept", "value")
    with Broker(data=tmp_path) as broker:
        assert [record.value for record in broker.records("kept")] == [b"value"]
    assert tmp_path.is_dir()


def test_errors_are_returned_the_ordered_number_of_times(broker: Broker) -> None:
    broker.create_topic("refused")
    broker.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=2)
    broker.produce("refused", "value")  # Such an error is retried.
    broker.fail("Produce", "TOPIC_AUTHORIZATION_FAILED", message="not you")
    with pytest.raises(ClientError, match="not you"):
        broker.produce("refused", "another")
    broker.produce("refused", "last")
    assert [record.value for record in broker.records("refused")] == [b"value", b"last"]


def test_faults_can_be_cleared(broker: Broker) -> None:
    broker.create_topic("spared")
    broker.fail("Produce", "TOPIC_AUTHORIZATION_FAILED", times=10)
    broker.clear_faults()
    broker.produce("spared", "value")


def test_answers_can_be_delayed(broker: Broker) -> None:
    broker.create_topic("late")
    broker.delay("Produce", 0.3)
    begin = time.monotonic()
    broker.produce("late", "value")
    assert time.monotonic() - begin >= 0.3


def test_lost_answers_and_dropped_requests_do_not_double_records(broker: Broker) -> None:
    broker.create_topic("once")
    broker.lose_answers("Produce", times=2)
    broker.produce("once", "value")
    broker.drop("Produce")
    broker.produce("once", "another")
    assert [record.value for record in broker.records("once")] == [b"value", b"another"]


def test_connections_can_be_dropped(broker: Broker) -> None:
    with socket.create_connection((broker.host, broker.port)) as connected:
        connected.sendall(b"\0")
        deadline = time.monotonic() + 5
        while not broker.drop_connections():
            assert time.monotonic() < deadline
        connected.settimeout(5)
        assert connected.recv(1) == b""


def test_a_fault_with_an_unknown_name_is_refused_at_once(broker: Broker) -> None:
    with pytest.raises(ValueError, match="not an API"):
        broker.delay("Produse", 1)
    with pytest.raises(ValueError, match="not an error"):
        broker.fail("Produce", "BAD_LUCK")


def test_it_works_from_a_coroutine() -> None:
    async def work() -> None:
        async with Broker() as broker:
            broker.produce("topic", "value")
            assert len(broker.records("topic")) == 1

    asyncio.run(work())


def test_a_stopped_broker_raises_a_clear_error() -> None:
    broker = Broker()
    with pytest.raises(RuntimeError, match="not running"):
        _ = broker.bootstrap_servers
    with pytest.raises(RuntimeError, match="not running"):
        broker.drop_connections()
    broker.close()


def test_a_value_that_is_not_bytes_or_text_is_refused_with_a_sentence() -> None:
    with Broker() as broker, pytest.raises(TypeError, match="not dict: serialise it first"):
        broker.produce("orders", {"id": 1})  # type: ignore[arg-type]
