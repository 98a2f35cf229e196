"""The client without async: one broker and one client on one loop, over real sockets."""

from collections.abc import Iterator

import pytest

from ottla.client.blocking import Client, Outgoing
from ottla.client.errors import CannotConnect
from ottla.env.sockets import SocketNetwork
from ottla.model.types import TopicPartition
from tests.unit.client.fake_broker import FakeBroker, World

PLACE = TopicPartition("t", 0)


@pytest.fixture
def client() -> Iterator[Client]:
    world = World()
    world.loop.close()
    with Client("127.0.0.1:1") as client:
        network = client.cluster._network
        assert isinstance(network, SocketNetwork)
        broker = FakeBroker(world)
        broker.listen_on(network)
        client.run(broker.start())
        client.cluster._bootstrap = [broker.address]
        yield client
        broker.stop()


def test_records_are_written_and_read(client: Client) -> None:
    written = client.write("t", [Outgoing(b"a", key=b"k"), Outgoing(b"b")])
    assert [item.offset for item in written] == [0, 1]
    values = [message.value for message in client.read({PLACE: 0}, to_end=True)]
    assert values == [b"a", b"b"]


def test_reading_stops_when_nothing_comes(client: Client) -> None:
    client.write("t", [Outgoing(b"a")])
    assert len(list(client.read({PLACE: 0}, idle_ms_max=500))) == 1


def test_reading_to_the_end_of_nothing_gives_nothing(client: Client) -> None:
    assert list(client.read({PLACE: 0}, to_end=True)) == []


def test_what_the_async_client_raises_is_raised() -> None:
    with Client("127.0.0.1:1") as client, pytest.raises(CannotConnect, match=r"127\.0\.0\.1:1"):
        client.write("t", [Outgoing(b"a")])
