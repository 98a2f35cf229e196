"""A real broker in virtual time, and clients that hand it whole frames.

Disk and clock are simulated, so that no test waits or leaves anything behind. A client's channel
only collects what it is given; `ask` feeds one request, ends the turn, and waits for the answer.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator, Sequence
from importlib import import_module
from random import Random
from typing import Any

from ottla.broker.node.auto_format import prepare_up
from ottla.broker.node.broker import Broker
from ottla.broker.settings.settings import Settings, zero_configuration
from ottla.broker.wire.connection import Connection
from ottla.env.environment import Environment
from ottla.env.files import FileRange
from ottla.env.network import Address, Piece
from ottla.env.workers import InlineWorkers
from ottla.model.types import Millis, Uuid
from ottla.protocol.codec import decode, encode
from ottla.protocol.header import RequestHeader, decode_response_header, encode_request_header
from ottla.protocol.messages import (
    create_partitions,
    create_topics,
    delete_topics,
    incremental_alter_configs,
)
from ottla.simulation.world.clock import VirtualClock
from ottla.simulation.world.disk import SimulatedDisk
from ottla.simulation.world.loop import VirtualLoop
from ottla.simulation.world.network import SimulatedNetwork
from ottla.simulation.world.selector import SimulatedSelector
from ottla.simulation.world.trace import Trace

# ruff: noqa: ANN401, ASYNC110  Messages are of any class; time is virtual, so polling is free.

LISTENER, CONTROLLER = "PLAINTEXT", "CONTROLLER"
DATA = "/data"
ANSWER_SECONDS_MAX = 120  # Of virtual time: nothing takes longer.
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
SET, DELETE = 0, 1


class HeldWorkers(InlineWorkers):
    """Work that waits, if told so, until the test lets it go on."""

    def __init__(self) -> None:
        self.is_holding = False
        self.waiting = 0

    async def run(self, work: Callable[..., Any], *arguments: object) -> Any:
        self.waiting += 1
        while self.is_holding:
            await asyncio.sleep(0.001)
        self.waiting -= 1
        return await super().run(work, *arguments)


SLOW_OPERATIONS = ("sync", "sync_directory", "sync_filesystem", "remove")


@contextlib.contextmanager
def held_workers(world: "World") -> Iterator[list[tuple[str, str]]]:
    """Hold back what workers do; what the loop syncs or removes by itself meanwhile is listed."""
    done: list[tuple[str, str]] = []
    step = world.disk.step

    def noting(operation: str, path: str, generation: int | None = None) -> bool:
        if operation in SLOW_OPERATIONS:
            done.append((operation, path))
        return step(operation, path, generation)

    world.disk.step = noting  # type: ignore[method-assign]
    world.workers.is_holding = True
    try:
        yield done
    finally:
        world.workers.is_holding = False
        world.disk.step = step  # type: ignore[method-assign]


class ClockedDisk(SimulatedDisk):
    """Its files bear the time of the virtual clock."""

    clock: VirtualClock

    @property
    def now_ms(self) -> int:
        return self.clock.wall()

    @now_ms.setter
    def now_ms(self, _: int) -> None:
        pass


class Channel:
    """Collects what is sent; `leave` says that the peer has read it."""

    def __init__(self, host: str, selector: SimulatedSelector) -> None:
        self.remote = Address(host, 50_000)
        self._selector = selector
        self._again: Callable[[], None] = _nothing
        self.sent = bytearray()
        self.is_reading = True
        self.is_open = True
        self.is_read = True  # Whether the peer reads what it is sent.
        self.failed = False  # A file could not be read while it was sent.
        self.connection: Connection | None = None
        self.on_sent: Callable[[], None] = _nothing

    def send(self, pieces: Sequence[Piece]) -> None:
        try:
            data = [p.read() if isinstance(p, FileRange) else bytes(p) for p in pieces]
        except OSError:
            self.failed = True  # As in production, the connection ends when the turn does.
            return
        self.sent += b"".join(data)
        self.on_sent()

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def serve_again(self, serve: Callable[[], None]) -> None:
        self._again = serve
        self._selector.serve_again(self)

    def ready(self, _events: int) -> None:
        if self.is_open:
            self._again()

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            if self.connection is not None:
                self.connection.closed()
            self.on_sent()

    def leave(self) -> None:
        if self.failed:
            self.close()
        if self.is_open and self.is_read and self.connection is not None:
            self.connection.sent()

    @property
    def unsent(self) -> int:
        return 0


class Closed(Exception):
    """The broker closed the connection instead of answering."""


class Client:
    def __init__(self, world: "World", listener: str, host: str) -> None:
        self.channel = Channel(host, world.host.selector)
        self.world = world
        self.connection = world.broker.connections.accept(
            self.channel, listener, world.broker.dispatchers[listener].serve
        )
        self.channel.connection = self.connection
        self._correlation_id = 0
        self._asked: dict[int, tuple[type, int]] = {}
        if not self.channel.is_open:
            self.connection.closed()

    def send(self, request: Any, version: int | None = None, client_id: str = "test") -> int:
        """Feed a request without ending the turn; returns its correlation id."""
        version = _version(request, version)
        self._correlation_id += 1
        header = RequestHeader(request.API_KEY, version, self._correlation_id, client_id)
        self.feed(encode_request_header(header) + encode(request, version))
        self._asked[self._correlation_id] = (_response_class(request), version)
        return self._correlation_id

    def feed(self, *frames: bytes) -> None:
        """Whole frames, without their sizes."""
        self.feed_bytes(b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames))

    def feed_bytes(self, data: bytes) -> None:
        while data and not self.connection.is_closed:
            buffer = self.connection.buffer()
            count = min(len(buffer), len(data))
            buffer[:count] = data[:count]
            data = data[count:]
            self.connection.received(count)

    def ask(self, request: Any, version: int | None = None) -> Any:
        """Feed, end the turn, and wait for the answer; Closed if there is none."""
        return self.answer_to(self.send(request, version))

    def answer_to(self, correlation_id: int) -> Any:
        self.world.end_turn()
        self.world.until(lambda: self.has_answer(correlation_id) or not self.channel.is_open)
        if not self.has_answer(correlation_id):
            raise Closed
        return self.answers()[correlation_id]

    def has_answer(self, correlation_id: int) -> bool:
        return any(_correlation(frame) == correlation_id for frame in self.frames())

    def frames(self) -> list[bytes]:
        """Every answer so far, without its size."""
        frames, data, position = [], self.channel.sent, 0
        while position < len(data):
            end = position + 4 + int.from_bytes(data[position : position + 4], "big")
            assert end <= len(data), "answers are whole"
            frames.append(bytes(data[position + 4 : end]))
            position = end
        return frames

    def answers(self) -> dict[int, Any]:
        """Every answer so far, decoded, by its correlation id."""
        decoded = {}
        for frame in self.frames():
            correlation_id = _correlation(frame)
            response_class, version = self._asked[correlation_id]
            _, position = decode_response_header(frame, response_class.API_KEY, version)
            assert correlation_id not in decoded, "a request is answered once"
            decoded[correlation_id] = decode(response_class, frame[position:], version)
        return decoded

    def close(self) -> None:
        """The client goes away."""
        self.channel.close()


class World:
    """One broker with its loop, clock and disk. Everything happens when the test says so."""

    def __init__(self, settings: dict[str, str], directories: Sequence[str] = (DATA,)) -> None:
        self.loop = VirtualLoop()
        self.errors: list[dict[str, Any]] = []
        self.loop.set_exception_handler(lambda _, context: self.errors.append(context))
        self.clock = VirtualClock(self.loop)
        self.disk = ClockedDisk(Random(1), capacity_bytes=1 << 40)
        self.disk.clock = self.clock
        self.workers = HeldWorkers()
        properties = zero_configuration(",".join(directories), host="broker", port=9092)
        properties |= {"ottla.disk.reserve.bytes": "4096", **settings}
        self.settings = Settings.load(properties, host_name=lambda: "broker")
        self.broker: Broker
        self.starts = 0

    def start(self) -> None:
        self.starts += 1
        self.network = SimulatedNetwork(self.loop, Random(2), Trace(lambda: self.loop.now_ns))
        self.host = self.network.host("broker")
        env = Environment(
            self.clock,
            self.disk,
            self.host,
            self.workers,
            Random(f"broker/{self.starts}"),
        )
        prepare_up(self.disk, self.settings, self.clock.wall(), env.random.randbytes)
        self.broker = Broker(self.settings, env)
        self.run(self.broker.start())

    def stop(self) -> None:
        self.run(self.broker.stop())

    def restart(self) -> None:
        self.stop()
        self.start()

    def lose_power(self) -> None:
        """What was not synced is lost; then the broker is started again."""
        self.run(self.broker.abort())
        self.disk.cut_power()
        self.start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    def until(self, condition: Callable[[], bool]) -> None:
        """Go on with whatever the loop has to do until something is true."""

        async def wait() -> None:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                for _ in range(20):  # Most answers need no time at all.
                    if condition():
                        return
                    await asyncio.sleep(0)
                while not condition():
                    await asyncio.sleep(0.001)

        if not condition():
            self.run(wait())

    def pass_ms(self, duration_ms: Millis) -> None:
        self.run(asyncio.sleep(duration_ms / 1000))

    def settle(self) -> None:
        """Let everything happen that needs no time."""
        self.end_turn()
        self.pass_ms(1)

    def end_turn(self) -> None:
        """What the network does before anything leaves; then it leaves."""
        self.broker.env.network.before_sending()
        for connection in list(self.broker.connections.open):
            connection._channel.leave()  # type: ignore[attr-defined]

    def client(self, listener: str = LISTENER, host: str = "client") -> Client:
        return Client(self, listener, host)

    @property
    def now(self) -> int:
        return self.clock.wall()

    def topic(self, name: str = "t", partitions: int = 1, **configs: object) -> Uuid:
        """Create a topic; `max_message_bytes=1` is its config `max.message.bytes`."""
        settings = [
            create_topics.CreatableTopicConfig(key.replace("_", "."), str(value))
            for key, value in configs.items()
        ]
        wanted = create_topics.CreatableTopic(name, partitions, 1, configs=settings)
        made = self.client().ask(create_topics.Request(topics=[wanted], timeout_ms=1000))
        assert made.topics[0].error_code == 0, made.topics[0]
        return made.topics[0].topic_id

    def grow(self, name: str, partitions: int) -> None:
        wanted = create_partitions.CreatePartitionsTopic(name, partitions, None)
        self.client().ask(create_partitions.Request([wanted], timeout_ms=1000))

    def delete(self, name: str) -> None:
        wanted = delete_topics.DeleteTopicState(name)
        gone = self.client().ask(delete_topics.Request([wanted], timeout_ms=1000))
        assert gone.responses[0].error_code == 0, gone

    def configure(self, name: str, config: str, value: object, kind: int = TOPIC_RESOURCE) -> None:
        """Set a config of a topic or of the broker; None takes it away."""
        operation = DELETE if value is None else SET
        text = None if value is None else str(value)
        change = incremental_alter_configs.AlterableConfig(config, operation, text)
        resource = incremental_alter_configs.AlterConfigsResource(kind, name, [change])
        done = self.client().ask(incremental_alter_configs.Request([resource]))
        assert done.responses[0].error_code == 0, done

    def log_bytes(self, topic: str = "t", partition: int = 0, directory: str = DATA) -> bytes:
        """All of a log's segments, one after the other."""
        path = f"{directory}/{topic}-{partition}"
        names = [name for name in self.disk.list(path) if name.endswith(".log")]
        return b"".join(self.disk.read(f"{path}/{name}") for name in names)

    def partition(self, topic: str = "t", index: int = 0) -> Any:
        return self.broker.partitions.led(topic, bytes(16), index)


@contextlib.contextmanager
def serving(directories: Sequence[str] = (DATA,), **settings: object) -> Iterator[World]:
    """A world whose broker runs: `num_partitions=3` is its setting `num.partitions`.

    At its end nothing may have gone wrong that nobody was told of.
    """
    given = {key.replace("_", "."): str(value) for key, value in settings.items()}
    world = World(given, directories)
    try:
        world.start()
        yield world
        if not world.broker.failed.done():
            world.stop()
        assert not world.errors, world.errors
    finally:
        _close(world)


def _close(world: World) -> None:
    with contextlib.suppress(AttributeError):
        if world.broker.failed.done():
            world.broker.failed.exception()  # So that nobody hears of it again.
    for task in asyncio.all_tasks(world.loop):
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        task.get_coro().close()  # type: ignore[union-attr]
    world.loop.close()


def _version(request: Any, version: int | None) -> int:
    return type(request).VERSIONS[-1] if version is None else version


def _response_class(request: Any) -> type:
    return import_module(type(request).__module__).Response


def _correlation(frame: bytes) -> int:
    return int.from_bytes(frame[:4], "big")


def _nothing() -> None:
    pass
