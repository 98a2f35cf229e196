"""A partition looks like silence from outside, and raises no error."""

import socket
from collections.abc import Iterator

import pytest

from ottla.protocol.codec import encode
from ottla.protocol.header import RequestHeader, encode_request_header
from ottla.protocol.messages import api_versions
from ottla.testing.process import BrokerProcess

SILENCE_SECONDS = 0.3


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    made = BrokerProcess(str(tmp_path_factory.mktemp("data")), {}, 0)
    yield made
    made.close()


@pytest.fixture(scope="module")
def port(process: BrokerProcess) -> int:
    return process.start().port


def ask(connection: socket.socket) -> None:
    frame = encode_request_header(RequestHeader(18, 3, 7, "test"))
    frame += encode(api_versions.Request("a", "1"), 3)
    connection.sendall(len(frame).to_bytes(4, "big") + frame)


def has_answer(connection: socket.socket, seconds: float) -> bool:
    connection.settimeout(seconds)
    try:
        return connection.recv(8)[4:] == (7).to_bytes(4, "big")
    except TimeoutError:
        return False


def test_a_partition_is_silent_until_healed(process: BrokerProcess, port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as before:
        ask(before)
        assert has_answer(before, 10)
        before.recv(100_000)
        process.cut()
        with socket.create_connection(("127.0.0.1", port)) as during:
            for connection in (before, during):
                ask(connection)
                assert not has_answer(connection, SILENCE_SECONDS)
            process.heal()
            for connection in (before, during):
                assert has_answer(connection, 10)


def test_healing_twice_has_no_effect(process: BrokerProcess, port: int) -> None:
    process.cut()
    process.heal()
    process.heal()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        ask(connection)
        assert has_answer(connection, 10)
