"""Two brokers that get the same frames; the second serves all of them by the general path."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ottla.broker.handlers import produce as handler
from ottla.protocol.codec import encode
from ottla.protocol.header import RequestHeader, encode_request_header
from ottla.protocol.messages import produce as wire
from tests.unit.broker.requests import batch, produce_request
from tests.unit.broker.serving import Client, World, serving


@contextmanager
def two_brokers(
    monkeypatch: pytest.MonkeyPatch, **settings: object
) -> Iterator[tuple[World, World]]:
    """The second has no fast path."""
    with serving(**settings) as fast, serving(**settings) as reference:
        with monkeypatch.context() as patched:
            patched.delattr(handler, "raw_handler")
            reference.topic("warm")
            write_once(reference)
        yield fast, reference


def write_once(world: World) -> None:
    """The handler's entry is made with its first request."""
    world.client().ask(produce_request(batch(b"x"), "warm"), 3)


def frame_of(request: wire.Request, version: int, correlation_id: int) -> bytes:
    header = RequestHeader(0, version, correlation_id, "a client")
    return encode_request_header(header) + encode(request, version)


class Pair:
    """One client of each broker, told the same."""

    def __init__(self, worlds: tuple[World, World], **topic: object) -> None:
        self.worlds = worlds
        self.partitions = int(str(topic.get("partitions", 1)))
        fast, _ = worlds
        fast.topic("warm")
        write_once(fast)
        for world in worlds:
            # No slices: they would end at different requests, and a connection that is closed has
            # sent the answers of earlier slices.
            world.host.selector.clock = lambda: 0.0
            self.topic_id = world.topic("t", **topic)
        self.clients = [Client(world, "PLAINTEXT", "client") for world in worlds]
        self.count = 0

    def tell(self, request: wire.Request, version: int, trailing: bytes = b"") -> None:
        self.count += 1
        frame = frame_of(request, version, self.count) + trailing
        self.feed(frame)

    def feed(self, frame: bytes) -> None:
        for client, world in zip(self.clients, self.worlds, strict=True):
            client.feed(frame)
            world.settle()
        self.compare()

    def compare(self) -> None:
        fast, reference = self.clients
        assert fast.channel.sent == reference.channel.sent
        assert fast.channel.is_open == reference.channel.is_open
        for index in range(self.partitions):
            first, second = (world.log_bytes(partition=index) for world in self.worlds)
            assert first == second
            ours, theirs = (world.partition(index=index).log.producers for world in self.worlds)
            assert ours.by_id == theirs.by_id
        if not fast.channel.is_open:
            self.clients = [Client(world, "PLAINTEXT", "client") for world in self.worlds]

    def topic(self, version: int) -> str | bytes:
        return self.topic_id if version >= 13 else "t"
