"""Faults on request, on a connection whose other end only keeps what it is sent."""

from collections.abc import Callable, Sequence

from ottla.broker.wire.connection import Connection, Reply
from ottla.broker.wire.deciders import Deciders
from ottla.broker.wire.faults import Delay, Drop, Fail, Faults, LoseAnswer
from ottla.broker.wire.memory import RequestMemory
from ottla.env.network import Address, Piece
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import decode
from ottla.protocol.messages import metadata, produce


async def refuse(_: object, __: object) -> None:
    raise Refusal(ErrorCode.NOT_CONTROLLER)


NOBODY = Deciders(refuse, lambda *_: None, refuse)


class End:
    """The network's side."""

    remote = Address("client", 1)
    unsent = 0

    def __init__(self) -> None:
        self.sent: list[Piece] = []
        self.peer: Connection | None = None

    def send(self, pieces: Sequence[Piece]) -> None:
        self.sent += pieces

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def serve_again(self, serve: Callable[[], None]) -> None: ...

    def close(self) -> None:
        assert self.peer is not None
        self.peer.closed()


class Timers:
    """As much of a broker as a fault asks for: something to be called later."""

    def __init__(self) -> None:
        self.later: list[tuple[int, Callable[[], None]]] = []

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> None:
        self.later.append((delay_ms, callback))


def ask(version: int) -> tuple[End, Connection, Reply]:
    end = End()
    connection = Connection(
        end,
        "PLAINTEXT",
        lambda *_: None,
        lambda *_: None,
        RequestMemory(1 << 20),
        1 << 20,
        lambda: 0.0,
    )
    end.peer = connection
    reply = Reply(connection, 7, version, "client", NOBODY)
    connection.expect(reply)
    return end, connection, reply


def test_faults_are_used_up_one_by_one_and_per_api() -> None:
    faults = Faults()
    assert not faults.waiting
    drop, delay = Drop(), Delay(5)
    faults.add(ApiKey.PRODUCE, drop, 2)
    faults.add(ApiKey.PRODUCE, delay, 1)
    assert faults.waiting
    assert faults.take(ApiKey.FETCH) is None
    assert faults.left(ApiKey.PRODUCE) == 3
    assert [faults.take(ApiKey.PRODUCE) for _ in range(4)] == [drop, drop, delay, None]
    assert not faults.waiting
    faults.add(ApiKey.FETCH, drop, 1)
    faults.clear()
    assert not faults.waiting


def test_an_error_is_answered_in_the_place_of_the_answer() -> None:
    end, _, reply = ask(version=1)
    request = metadata.Request([metadata.MetadataRequestTopic(name="topic")])
    fault = Fail(ApiKey.METADATA, ErrorCode.LEADER_NOT_AVAILABLE)
    assert fault(request, reply, Timers()) is None
    frame = b"".join(bytes(piece) for piece in end.sent)
    answer = decode(metadata.Response, frame[8:], 1)
    assert int.from_bytes(frame[4:8], "big") == 7
    assert answer.topics[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE


def test_an_error_for_whoever_reads_no_answer_closes_the_connection() -> None:
    end, connection, reply = ask(version=3)
    fault = Fail(ApiKey.PRODUCE, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert fault(produce.Request(acks=0), reply, Timers()) is None
    assert connection.is_closed
    assert not end.sent


def test_a_dropped_request_closes_the_connection() -> None:
    _, connection, reply = ask(version=3)
    assert Drop()(None, reply, Timers()) is None
    assert connection.is_closed


def test_a_delayed_answer_leaves_later() -> None:
    end, _, reply = ask(version=3)
    timers = Timers()
    spoiled = Delay(250)(None, reply, timers)
    spoiled.complete((b"answer",))
    assert not end.sent
    ((delay_ms, callback),) = timers.later
    assert delay_ms == 250
    callback()
    assert end.sent == [b"answer"]


def test_a_lost_answer_closes_the_connection_after_the_work_is_done() -> None:
    end, connection, reply = ask(version=3)
    spoiled = LoseAnswer()(None, reply, Timers())
    assert not connection.is_closed
    spoiled.complete((b"answer",))
    assert connection.is_closed
    assert not end.sent
