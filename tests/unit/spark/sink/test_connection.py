import socket
import threading
from contextlib import closing

import pytest

from ottla.client.errors import CannotConnect, ConnectionLost, NotServed, RequestTimeout
from ottla.env.network import Address
from ottla.protocol.messages import metadata as wire
from ottla.protocol.messages import update_features
from ottla.spark.sink.connection import SinkConnection
from ottla.testing import Broker


def connect(broker: Broker, request_ms_max: int = 5000) -> SinkConnection:
    address = Address(broker.host, broker.port)
    return SinkConnection(address, client_id="test", request_ms_max=request_ms_max)


def test_answers_come_in_order(broker: Broker) -> None:
    connection = connect(broker)
    version = connection.version_for(wire.Request)
    for _ in range(3):
        connection.send(wire.Request(topics=[]), version)
    assert connection.under_way == 3
    for left in (2, 1, 0):
        assert len(connection.receive(wire.Response).brokers) == 1
        assert connection.under_way == left
    assert connection.ask(wire.Request(topics=[]), wire.Response).cluster_id
    connection.close()


def test_what_nobody_serves_is_told(broker: Broker) -> None:
    class Nobody:
        API_KEY = update_features.Request.API_KEY
        VERSIONS = range(900, 901)

    with closing(connect(broker)) as open_one, pytest.raises(NotServed, match="not serve"):
        open_one.version_for(Nobody)


def test_an_address_where_nothing_listens_is_told() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = Address("127.0.0.1", held.getsockname()[1])
        with pytest.raises(CannotConnect, match="nothing listens there"):
            SinkConnection(address, client_id="test", request_ms_max=1000)


def test_a_connection_that_was_lost_says_so_each_time(broker: Broker) -> None:
    connection = connect(broker)
    version = connection.version_for(wire.Request)
    broker.drop("Metadata")
    connection.send(wire.Request(topics=[]), version)
    for _ in range(2):
        with pytest.raises(ConnectionLost):
            connection.receive(wire.Response)
    with pytest.raises(ConnectionLost):
        connection.send(wire.Request(topics=[]), version)


def test_a_silent_broker_is_given_up(broker: Broker) -> None:
    connection = connect(broker, request_ms_max=200)
    broker.delay("Metadata", 1.0)
    with pytest.raises(RequestTimeout, match="no answer within 200 ms"):
        connection.ask(wire.Request(topics=[]), wire.Response)


def test_a_peer_that_is_no_broker_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(1000)
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=greet)
        thread.start()
        address = Address("127.0.0.1", server.getsockname()[1])
        with pytest.raises(CannotConnect, match="is this a broker"):
            SinkConnection(address, client_id="test", request_ms_max=2000)
        thread.join()
