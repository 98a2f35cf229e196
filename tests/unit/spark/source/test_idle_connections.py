import os

import pytest

from ottla.client.errors import RequestTimeout
from ottla.protocol.messages import metadata
from ottla.spark.options import Access
from ottla.spark.source import idle_connections
from ottla.spark.source.idle_connections import borrow, give_back
from ottla.testing import Broker
from tests.unit.spark.sources import address_of


def access_of(broker: Broker, client_id: str) -> Access:
    return Access(broker.bootstrap_servers, client_id, request_ms_max=5000)


def test_connections_are_kept_for_the_next_task(broker: Broker) -> None:
    access, address = access_of(broker, "keeping"), address_of(broker)
    first, is_new = borrow(access, address)
    assert is_new
    give_back(access, first)
    second, is_new = borrow(access, address)
    assert second is first
    assert not is_new
    third, is_new = borrow(access, address)
    assert is_new
    second.send(metadata.Request([]), metadata.Response)
    give_back(access, second)  # An answer is still to come: nobody else may get it.
    give_back(access, third)
    fourth, _ = borrow(access, address)
    assert fourth is third
    fourth.close()


def test_a_kept_connection_has_the_timeout_of_its_next_task(broker: Broker) -> None:
    access = access_of(broker, "waiting")
    give_back(access, borrow(access, address_of(broker), 60_000)[0])
    connection, is_new = borrow(access, address_of(broker), 50)
    assert not is_new
    broker.delay("Metadata", 1.0)
    with pytest.raises(RequestTimeout, match="50 ms"):
        connection.ask(metadata.Request([]), metadata.Response)
    broker.clear_faults()


def test_a_fork_does_not_use_the_sockets_of_its_parent(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    access, address = access_of(broker, "forking"), address_of(broker)
    give_back(access, borrow(access, address)[0])
    parent = os.getpid()
    monkeypatch.setattr(idle_connections.os, "getpid", lambda: parent + 1)
    second, is_new = borrow(access, address)
    assert is_new
    second.close()
    monkeypatch.undo()
    borrow(access, address)[0].close()
