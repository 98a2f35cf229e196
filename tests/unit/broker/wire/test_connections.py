"""How many connections there may be, which are closed for their silence, and how they share a turn.

Fairness is tested over real channels: each frame is charged to a clock of the test's own.
"""

import asyncio
import socket
import struct
from collections.abc import Callable

import pytest

from ottla.broker.wire.connection import SLICE_SECONDS, Connection, Place
from ottla.broker.wire.memory import RequestMemory
from ottla.env.channels import SocketChannel
from ottla.env.log_limit import INTERVAL_SECONDS
from ottla.env.loop import SERVE_SECONDS, DispatchLoop
from ottla.env.network import Channel
from ottla.env.sockets import SocketNetwork
from ottla.env.workers import ThreadWorkers
from ottla.model.errors import ProtocolError
from ottla.protocol.messages import api_versions
from tests.unit.broker.requests import fetch_request
from tests.unit.broker.serving import BROKER_RESOURCE, Client, World, serving


def ask(client: Client) -> None:
    assert client.ask(api_versions.Request("test", "1"), 3).api_keys


def open_hosts(world: World) -> list[str]:
    return [connection.remote.host for connection in world.broker.connections.open]


def test_more_connections_than_allowed_are_closed_at_once() -> None:
    with serving(max_connections=2) as world:
        first, second, third = (world.client() for _ in range(3))
        assert not third.channel.is_open
        assert first.channel.is_open
        assert second.channel.is_open
        ask(first)
        second.close()
        ask(world.client())


def test_one_host_may_not_take_more_than_its_share() -> None:
    overrides = {"max_connections_per_ip": 1, "max_connections_per_ip_overrides": "10.0.0.9:2"}
    with serving(**overrides) as world:
        clients = [world.client(host="10.0.0.1") for _ in range(2)]
        assert [client.channel.is_open for client in clients] == [True, False]
        assert world.client(host="10.0.0.2").channel.is_open
        favoured = [world.client(host="10.0.0.9") for _ in range(3)]
        assert [client.channel.is_open for client in favoured] == [True, True, False]
        clients[0].close()
        assert world.client(host="10.0.0.1").channel.is_open


def test_the_bound_may_change_while_the_broker_runs() -> None:
    with serving() as world:
        first = world.client()
        world.configure("", "max.connections", 1, BROKER_RESOURCE)
        assert not world.client().channel.is_open
        ask(first)


def test_hosts_that_are_gone_are_not_remembered() -> None:
    with serving() as world:
        for number in range(100):
            world.client(host=f"10.0.0.{number}").close()
        assert not world.broker.connections._by_host
        assert not world.broker.connections.open


def test_a_silent_connection_is_closed_and_a_busy_one_is_not() -> None:
    with serving(connections_max_idle_ms=60_000) as world:
        silent, busy = world.client(host="silent"), world.client(host="busy")
        for _ in range(10):
            world.pass_ms(9_000)
            ask(busy)
        assert open_hosts(world) == ["busy"]
        assert not silent.channel.is_open


def test_a_short_bound_on_silence_is_kept_closely() -> None:
    with serving(connections_max_idle_ms=1000) as world:
        client = world.client()
        world.pass_ms(900)
        assert client.channel.is_open
        world.pass_ms(600)
        assert not client.channel.is_open


def test_who_waits_for_an_answer_is_not_idle() -> None:
    with serving(connections_max_idle_ms=1000) as world:
        world.topic()
        client = world.client()
        asked = client.send(fetch_request(("t", 0, 0), max_wait_ms=30_000), 12)
        world.pass_ms(29_000)
        assert client.channel.is_open
        world.pass_ms(1_100)
        assert client.has_answer(asked)
        world.pass_ms(1_500)
        assert not client.channel.is_open


def test_without_a_bound_nobody_is_idle() -> None:
    with serving(connections_max_idle_ms=-1) as world:
        client = world.client()
        world.pass_ms(1_200_000)
        assert client.channel.is_open


def test_a_broker_that_stops_closes_them_all() -> None:
    with serving() as world:
        clients = [world.client() for _ in range(3)]
        world.restart()
        assert not any(client.channel.is_open for client in clients)


def test_malformed_bytes_are_counted_as_the_peers_error_and_exceptions_as_ours(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serving() as world:
        metrics, failed = world.broker.metrics, world.broker.connections.failed
        for error in (ProtocolError("no"), struct.error("short"), IndexError("short")):
            client = world.client()
            failed(client.connection, error)
            assert not client.channel.is_open
        assert (metrics.protocol_errors, metrics.server_errors) == (3, 0)
        for error in (ValueError("first"), OverflowError("second"), MemoryError("third")):
            client = world.client()
            failed(client.connection, error)
            assert not client.channel.is_open
        assert (metrics.protocol_errors, metrics.server_errors) == (3, 3)
        assert "first" in caplog.text
        assert "second" not in caplog.text
        world.pass_ms(round(INTERVAL_SECONDS * 1000))
        failed(world.client().connection, ValueError("fourth"))
        assert "2 more since the last such line" in caplog.text
        assert world.broker.env.network.peer_failures == len(world.errors) == 4
        world.errors.clear()


def test_failed_assert_of_a_request_is_raised_again() -> None:
    with serving() as world:
        client = world.client()
        with pytest.raises(AssertionError, match="cannot be"):
            world.broker.connections.failed(client.connection, AssertionError("cannot be"))


def test_no_client_can_fill_the_log_with_its_mistakes(caplog: pytest.LogCaptureFixture) -> None:
    with serving(max_connections=5) as world:
        for number in range(20):
            world.broker.connections.failed(
                world.client().connection, ProtocolError(f"mistake {number}")
            )
        assert [r.getMessage() for r in caplog.records if "mistake" in r.getMessage()] == [
            caplog.records[0].getMessage()
        ]
        clients = [world.client() for _ in range(20)]
        refused = [r for r in caplog.records if "too many" in r.getMessage()]
        assert (sum(c.channel.is_open for c in clients), len(refused)) == (5, 1)
        world.pass_ms(round(INTERVAL_SECONDS * 1000))
        world.broker.connections.failed(clients[0].connection, ProtocolError("another"))
        assert "another (19 more since the last such line)" in caplog.text


GREEDY = 10
FRAME_SECONDS = 0.0005
TURNS_MAX = 3


class Shared:
    """Connections over socket pairs that share a loop whose clock only the service moves."""

    def __init__(self) -> None:
        self.loop, self.workers = DispatchLoop(), ThreadWorkers()
        self.network = SocketNetwork(self.loop, self.workers)
        self.network.before_sending = self._flush
        self.now = self._began = 0.0
        self.loop.selector.clock = lambda: self.now
        self.turns: list[float] = []  # The charged time of each.
        self.staged: list[Place] = []
        self.memory = RequestMemory(64 << 20)
        self.clients: list[socket.socket] = []

    def connect(self) -> socket.socket:
        here, there = socket.socketpair()
        for each in (here, there):
            each.setblocking(False)
        SocketChannel(self.network, here, self._accept)
        self.clients.append(there)
        return there

    def run(self, until: Callable[[], bool]) -> None:
        async def wait() -> None:
            async with asyncio.timeout(20):
                while not until():  # noqa: ASYNC110  Each is a turn of the loop.
                    await asyncio.sleep(0)

        self.loop.run_until_complete(wait())

    def close(self) -> None:
        for client in self.clients:
            client.close()
        self.run(lambda: not self.loop.selector.is_anyone_waiting)
        self.workers.close()
        self.loop.close()

    def _accept(self, channel: Channel) -> Connection:
        def failed(_: Connection, error: Exception) -> None:
            raise error

        memory, clock = self.memory, self.network.clock
        return Connection(channel, "PLAINTEXT", self._serve, failed, memory, 1 << 20, clock)

    def _serve(
        self, connection: Connection, frame: memoryview, start: int, end: int, _limit: int
    ) -> int:
        self.now += FRAME_SECONDS
        reply = Place(connection)
        connection.expect(reply)
        if frame[start] == ord("s"):  # Answered by the flush, as a produce is.
            self.staged.append(reply)
        else:
            reply.complete((b"ok",))
        return end

    def _flush(self) -> None:
        if self.now > self._began:
            self.turns.append(self.now - self._began)
            self._began = self.now
        staged, self.staged = self.staged, []
        for reply in staged:
            reply.complete((b"ok",))
        self.memory.flushed()


@pytest.mark.parametrize("kind", [b"s", b"a"])
def test_good_client_is_served_within_a_few_turns_while_others_pipeline(kind: bytes) -> None:
    shared = Shared()
    greedy, good = [shared.connect() for _ in range(GREEDY)], shared.connect()
    frame = struct.pack(">i", 30) + kind * 30
    for each in greedy:
        each.send(frame * 2000)
    shared.run(lambda: len(shared.turns) >= 2)
    for _ in range(10):
        good.send(frame)
        turns_max = len(shared.turns) + TURNS_MAX
        shared.run(lambda turns_max=turns_max: len(shared.turns) > turns_max)
        assert good.recv(100) == b"ok"
    assert max(shared.turns) <= SERVE_SECONDS + SLICE_SECONDS + 2 * FRAME_SECONDS
    served = [len(each.recv(1 << 20)) for each in greedy]
    assert max(served) - min(served) <= 2 * len(b"ok") * SLICE_SECONDS / FRAME_SECONDS
    shared.close()
