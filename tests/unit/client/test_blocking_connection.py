"""A blocking connection over a real pair of sockets; the peer's bytes are written beforehand."""

import socket
import threading
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from ottla.client.blocking_connection import BlockingConnection
from ottla.client.errors import ConnectionLost, NotServed, RequestTimeout
from ottla.env.network import Address
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages import api_versions, fetch, metadata
from tests.unit.client.fake_broker import framed

SERVED = [
    api_versions.ApiVersion(ApiKey.METADATA, 0, 12),
    api_versions.ApiVersion(ApiKey.FETCH, 4, 12),
]


class Pair(NamedTuple):
    connection: BlockingConnection
    peer: socket.socket

    def answer(self, correlation_id: int, cluster_id: str = "c") -> None:
        response = metadata.Response(cluster_id=cluster_id)
        self.peer.sendall(framed(response, ApiKey.METADATA, 12, correlation_id))

    def send(self) -> None:
        self.connection.send(metadata.Request([]), metadata.Response)


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, peer = socket.socketpair()
    with ours, peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        connection = BlockingConnection(ours, Address("broker1", 9092), "test", 5000)
        hello = api_versions.Response(0, SERVED)
        peer.sendall(framed(hello, ApiKey.API_VERSIONS, 4, 1))
        connection.negotiate()
        yield Pair(connection, peer)


def test_responses_come_in_the_order_of_requests(pair: Pair) -> None:
    for _ in range(3):
        pair.send()
    for correlation_id in (2, 3, 4):
        pair.answer(correlation_id, f"cluster {correlation_id}")
    for left in (2, 1, 0):
        assert not pair.connection.is_idle
        assert pair.connection.receive().cluster_id == f"cluster {4 - left}"
        assert pair.connection.under_way == left
    assert pair.connection.is_idle
    pair.connection.close()
    assert not pair.connection.is_idle


def test_an_older_broker_is_asked_again_for_its_versions() -> None:
    ours, peer = socket.socketpair()
    with ours, peer:
        connection = BlockingConnection(ours, Address("broker1", 9092), "test", 5000)
        older = api_versions.Response(35, [api_versions.ApiVersion(ApiKey.API_VERSIONS, 0, 2)])
        newer = framed(api_versions.Response(0, SERVED), ApiKey.API_VERSIONS, 2, 2)

        def serve() -> None:
            for answer in (framed(older, ApiKey.API_VERSIONS, 0, 1), newer):
                peer.recv(1000)
                peer.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        connection.negotiate()
        thread.join()
        assert connection.version_for(fetch.Request) == 12
        with pytest.raises(NotServed, match="does not serve FETCH"):
            connection.version_for(fetch.Request, 3)


def test_large_responses_are_received_into_one_buffer(pair: Pair) -> None:
    found = []
    for correlation_id in (2, 3):
        records = bytes([correlation_id]) * 100_000
        partition = fetch.PartitionData(records=records)
        topic = fetch.FetchableTopicResponse("t", partitions=[partition])
        response = fetch.Response(responses=[topic])
        pair.connection.send(fetch.Request(), fetch.Response, 11)
        pair.peer.sendall(framed(response, ApiKey.FETCH, 11, correlation_id))
        answer = pair.connection.receive()
        found.append(answer.responses[0].partitions[0].records)
        assert bytes(found[-1]) == records
    assert bytes(found[0]) == bytes(found[1])  # Overwritten: nothing was copied or allocated.


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"\0\0", "broker1:9092 closed the connection"),
        (b"\0\0\0\x05\0\0\0\x63\0", "answer 99 came"),
    ],
)
def test_a_connection_that_was_lost_says_so_each_time(pair: Pair, sent: bytes, said: str) -> None:
    pair.send()
    pair.peer.sendall(sent)
    pair.peer.shutdown(socket.SHUT_WR)
    for _ in range(2):
        with pytest.raises(ConnectionLost, match=said):
            pair.connection.receive()
    with pytest.raises(ConnectionLost, match=said):
        pair.send()
    assert not pair.connection.is_idle


def test_responses_before_malformed_bytes_are_received(pair: Pair) -> None:
    pair.send()
    pair.send()
    pair.answer(2)
    pair.peer.sendall(b"\0\0\0\x05\0\0\0\x63\0")
    assert pair.connection.receive().cluster_id == "c"
    with pytest.raises(ConnectionLost, match="answer 99 came"):
        pair.connection.receive()


def test_a_peer_that_is_gone_is_told_when_something_is_sent(pair: Pair) -> None:
    pair.peer.close()
    with pytest.raises(ConnectionLost, match="broker1:9092 was lost: broken pipe"):
        pair.send()


def test_a_silent_broker_is_given_up(pair: Pair) -> None:
    pair.connection.set_timeout(20)
    with pytest.raises(RequestTimeout, match="broker1:9092 gave no answer within 20 ms"):
        pair.connection.ask(metadata.Request([]), metadata.Response)
    with pytest.raises(ConnectionLost):
        pair.send()
