import os
import socket
import threading

import pytest

from ottla.client.errors import CannotConnect, ConnectionLost, NotServed, RequestTimeout
from ottla.env.network import Address
from ottla.protocol.messages import metadata, vote
from ottla.spark.source import link as links
from ottla.spark.source.link import Link, borrow, give_back
from ottla.testing import Broker
from tests.unit.spark.sources import address_of


def listening(answer: bytes | None) -> tuple[Address, socket.socket]:
    """A peer that accepts one connection and sends `answer`, or nothing at all."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(1000)
            if answer is not None:
                connection.sendall(answer)
            else:
                connection.recv(1000)

    threading.Thread(target=serve, daemon=True).start()
    return Address("127.0.0.1", server.getsockname()[1]), server


def test_a_request_is_answered(broker: Broker) -> None:
    link = Link(address_of(broker), "me", 5000)
    answer = link.ask(metadata.Request([]), metadata.Response)
    assert [node.port for node in answer.brokers] == [broker.port]
    link.close()
    assert not link.is_idle


def test_answers_come_in_the_order_of_requests(broker: Broker) -> None:
    link = Link(address_of(broker), "me", 5000)
    for _ in range(3):
        link.send(metadata.Request([]), metadata.Response)
    assert not link.is_idle
    assert all(link.receive().brokers for _ in range(3))
    assert link.is_idle
    link.close()


def test_an_api_that_is_not_served_is_told(broker: Broker) -> None:
    link = Link(address_of(broker), "me", 5000)
    with pytest.raises(NotServed, match="does not serve"):
        link.version_for(vote.Request, -1)
    link.close()


def test_nobody_there() -> None:
    with pytest.raises(CannotConnect, match=r"cannot connect to 127\.0\.0\.1:1: "):
        Link(Address("127.0.0.1", 1), "me", 1000)


@pytest.mark.parametrize(
    ("answer", "kind", "why"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", ConnectionLost, "no Kafka broker"),
        (b"\0\0\0\x04\0\0\0\x63", ConnectionLost, "answer 99 came"),
        (b"\0\0", ConnectionLost, "closed the connection"),
        (None, RequestTimeout, "no answer in time"),
    ],
)
def test_a_peer_that_is_no_broker(answer: bytes | None, kind: type, why: str) -> None:
    address, server = listening(answer)
    with server, pytest.raises(kind, match=why):
        Link(address, "me", 300)


def test_links_are_kept_for_the_next_task(broker: Broker) -> None:
    first, is_new = borrow(address_of(broker), "keeping", 5000)
    assert is_new
    give_back(first)
    second, is_new = borrow(address_of(broker), "keeping", 5000)
    assert second is first
    assert not is_new
    third, is_new = borrow(address_of(broker), "keeping", 5000)
    assert is_new
    second.send(metadata.Request([]), metadata.Response)
    give_back(second)  # An answer is still to come: nobody else may get it.
    give_back(third)
    fourth, _ = borrow(address_of(broker), "keeping", 5000)
    assert fourth is third
    fourth.close()


def test_a_fork_does_not_use_the_sockets_of_its_parent(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = borrow(address_of(broker), "forking", 5000)
    give_back(first)
    parent = os.getpid()
    monkeypatch.setattr(links.os, "getpid", lambda: parent + 1)
    second, is_new = borrow(address_of(broker), "forking", 5000)
    assert is_new
    second.close()
    monkeypatch.undo()
    borrow(address_of(broker), "forking", 5000)[0].close()
