"""A connection is fed bytes by hand here: the channel only collects what it is given."""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.wire.connection import (
    QUEUED_BYTES_MAX,
    REPLIES_WAITING_MAX,
    SLICE_SECONDS,
    Connection,
    Place,
)
from ottla.broker.wire.memory import FREE_BYTES, READ_BYTES_MAX, RequestMemory
from ottla.env.network import Address

FRAME_BYTES_MAX = 1 << 20
STEPS_MAX = 200_000


class Channel:
    """Collects what is sent; the test says when it has left, and when the next turn comes."""

    def __init__(self) -> None:
        self.remote = Address("client", 1)
        self.sent: list[bytes] = []
        self.is_reading = True
        self.connection: Connection
        self.again: list[Callable[[], None]] = []

    def send(self, pieces: list[bytes]) -> None:
        self.sent += pieces

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def serve_again(self, serve: Callable[[], None]) -> None:
        self.again = [serve]  # However often it was asked for.

    def next_turn(self) -> None:
        again, self.again = self.again, []
        for serve in again:
            serve()

    def close(self) -> None:
        self.connection.closed()


class Client:
    """A connection, its channel, and a server that keeps the frames it gets."""

    def __init__(self, memory: RequestMemory | None = None) -> None:
        self.memory = memory or RequestMemory(64 << 20)
        self.channel = Channel()
        self.frames: list[bytes] = []
        self.replies: list[Place] = []
        self.errors: list[Exception] = []
        self.answer_at_once: bytes | None = b"ok"
        self.now = 0.0
        self.seconds_per_frame = 0.0
        self.connection = self.channel.connection = Connection(
            self.channel,
            "PLAINTEXT",
            self.serve,
            self.failed,
            self.memory,
            FRAME_BYTES_MAX,
            lambda: self.now,
        )

    def serve(
        self, connection: Connection, frame: memoryview, start: int, end: int, _limit: int
    ) -> int:
        self.now += self.seconds_per_frame
        self.frames.append(bytes(frame[start:end]))
        reply = Place(connection)
        connection.expect(reply)
        self.replies.append(reply)
        if self.answer_at_once is not None:
            reply.complete((self.answer_at_once,))
        return end

    def failed(self, connection: Connection, error: Exception) -> None:
        self.errors.append(error)
        connection.close()

    def feed(self, data: bytes) -> None:
        while data and not self.connection.is_closed:
            buffer = self.connection.buffer()
            count = min(len(buffer), len(data))
            buffer[:count] = data[:count]
            data = data[count:]
            self.connection.received(count)
            self.memory.flushed()


def framed(*bodies: bytes) -> bytes:
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


@given(
    st.lists(st.binary(min_size=1, max_size=50), min_size=1, max_size=10),
    st.lists(st.integers(1, 40), min_size=1),
)
def test_frames_arrive_whole_however_the_bytes_are_cut(
    bodies: list[bytes], cuts: list[int]
) -> None:
    client = Client()
    data = framed(*bodies)
    for cut in cuts * (len(data) // sum(cuts) + 1):
        client.feed(data[:cut])
        data = data[cut:]
    assert client.frames == bodies


def test_large_frames_are_received_into_memory_that_is_given_back() -> None:
    client = Client()
    bodies = [b"a" * (READ_BYTES_MAX * 3), b"b", b"c" * READ_BYTES_MAX]
    client.feed(framed(*bodies))
    assert client.frames == bodies
    assert client.memory.used_bytes == 0


def test_replies_leave_in_the_order_of_the_requests() -> None:
    client = Client()
    client.answer_at_once = None
    client.feed(framed(b"1", b"2", b"3"))
    client.replies[2].complete((b"third",))
    client.replies[0].complete((b"first",))
    assert client.channel.sent == [b"first"]
    client.replies[1].complete((b"second",))
    assert client.channel.sent == [b"first", b"second", b"third"]


def test_a_size_that_cannot_be_closes_the_connection() -> None:
    for size in (0, -1, FRAME_BYTES_MAX + 1):
        client = Client()
        client.feed(size.to_bytes(4, "big", signed=True) + b"x")
        assert client.connection.is_closed
        assert client.frames == []


def test_a_peer_that_does_not_read_is_not_read_from() -> None:
    client = Client()
    client.answer_at_once = b"x" * QUEUED_BYTES_MAX
    client.feed(framed(b"1", b"2", b"3", b"4"))
    assert client.frames == [b"1", b"2"]
    assert not client.channel.is_reading
    client.answer_at_once = b"ok"
    client.connection.sent()
    client.channel.next_turn()
    assert client.frames == [b"1", b"2", b"3", b"4"]
    assert client.channel.is_reading


def test_requests_that_wait_for_their_answers_are_bounded() -> None:
    client = Client()
    client.answer_at_once = None
    client.feed(framed(*[b"x"] * (REPLIES_WAITING_MAX + 10)))
    assert len(client.frames) == REPLIES_WAITING_MAX + 1
    for reply in client.replies[:20]:
        reply.complete((b"ok",))
    client.channel.next_turn()
    assert len(client.frames) == REPLIES_WAITING_MAX + 10
    assert client.channel.is_reading


def test_memory_for_large_frames_is_bounded_over_all_connections() -> None:
    memory = RequestMemory(READ_BYTES_MAX)
    first, second = Client(memory), Client(memory)
    body = b"x" * (READ_BYTES_MAX + 1)
    first.feed(framed(body)[:-1])
    second.feed(framed(body)[:1000])
    assert not second.channel.is_reading
    first.feed(b"x")
    assert second.channel.is_reading
    second.feed(framed(body)[1000:])
    assert second.frames == first.frames == [body]


def test_a_closed_connection_gives_its_memory_back_and_takes_no_answers() -> None:
    client = Client()
    client.answer_at_once = None
    client.feed(framed(b"1"))
    client.feed(framed(b"x" * READ_BYTES_MAX)[:1000])
    assert client.memory.used_bytes > 0
    client.connection.close()
    assert client.memory.used_bytes == 0
    client.replies[0].complete((b"late",))
    assert client.channel.sent == []


def test_unfinished_small_frames_are_bounded_over_all_connections() -> None:
    memory = RequestMemory(1 << 20)
    clients = [Client(memory) for _ in range(100)]
    for client in clients:
        data = framed(b"x" * 100_000)[:-1]
        while data and client.channel.is_reading:
            count = min(len(data), len(client.connection.buffer()))
            client.feed(data[:count])
            data = data[count:]
    assert memory.used_bytes < (1 << 20) + 100_000 + len(clients) * 2 * FREE_BYTES
    assert clients[0].channel.is_reading
    clients[0].feed(b"x")
    assert clients[0].frames == [b"x" * 100_000]


def test_unfinished_small_frames_beyond_the_memory_are_all_finished() -> None:
    memory = RequestMemory(1 << 20)
    clients = [Client(memory) for _ in range(30)]
    body = b"x" * 100_000
    unsent = {client: framed(body) for client in clients}
    for client in clients:  # All but the last bytes, however much memory that takes.
        client.feed(unsent[client][:-2000])
        unsent[client] = unsent[client][-2000:]
    for _ in range(200):
        for client in clients:
            client.channel.next_turn()
            if client.channel.is_reading and unsent[client]:
                count = len(client.connection.buffer())
                client.feed(unsent[client][:count])
                unsent[client] = unsent[client][count:]
    assert [client.frames for client in clients] == [[body]] * len(clients)
    assert memory.used_bytes == 0


class Holding(Client):
    """Serves some requests later, answers some later, and holds back the ones behind some."""

    def __init__(self, memory: RequestMemory, random: Random) -> None:
        super().__init__(memory)
        self.random = random
        self.holds = 0
        self.postponed = -1
        sizes = random.choices((1, 900, 1100, 30_000, 131_072, 131_080, 300_000), k=5)
        self.bodies = [bytes([number]) * size for number, size in enumerate(sizes)]
        self.unsent = framed(*self.bodies)

    def serve(
        self, connection: Connection, frame: memoryview, start: int, end: int, limit: int
    ) -> int:
        chance = self.random.random()
        if chance < 0.3:
            connection.hold()
            self.holds += 1
            if self.postponed != len(self.frames):
                self.postponed = len(self.frames)
                return start - 4
        self.answer_at_once = b"%d," % len(self.frames) if chance < 0.6 else None
        self.seconds_per_frame = SLICE_SECONDS * self.random.random()
        return super().serve(connection, frame, start, end, limit)

    @property
    def is_done(self) -> bool:
        return len(self.channel.sent) == len(self.bodies) and self.channel.is_reading

    def step(self) -> None:
        kind = self.random.randrange(4)
        waiting = [n for n, reply in enumerate(self.replies) if reply.pieces is None]
        if kind == 0 and self.channel.is_reading and self.unsent:
            count = min(len(self.connection.buffer()), self.random.choice((1, 50_000, 1 << 20)))
            data, self.unsent = self.unsent[:count], self.unsent[count:]
            self.feed(data)
        elif kind == 1 and self.holds:
            self.holds -= 1
            self.connection.release()
        elif kind == 2 and waiting:
            number = self.random.choice(waiting)
            self.replies[number].complete((b"%d," % number,))
        else:
            self.channel.next_turn()
            self.memory.flushed()


@pytest.mark.parametrize("seed", range(8))
def test_every_request_is_served_and_answered_in_order_however_scarce_memory_is(seed: int) -> None:
    random = Random(seed)
    memory = RequestMemory(random.choice((50_000, 300_000, 1 << 20)))
    clients = [Holding(memory, random) for _ in range(10)]
    for _ in range(STEPS_MAX):
        random.choice(clients).step()
        if all(client.is_done for client in clients):
            break
    for client in clients:
        assert client.frames == client.bodies
        assert b"".join(client.channel.sent) == b"0,1,2,3,4,"
        assert client.channel.is_reading
    assert memory.used_bytes == 0


def test_connection_serves_frames_for_a_slice_and_the_rest_in_later_turns() -> None:
    client = Client()
    bodies = [b"%d" % number for number in range(24)]
    client.seconds_per_frame = SLICE_SECONDS / 10
    client.feed(framed(*bodies))
    assert 10 <= len(client.frames) <= 12
    assert not client.channel.is_reading
    client.connection.sent()
    assert len(client.frames) <= 12, "nothing is served in the middle of a flush"
    for _ in range(2):
        client.channel.next_turn()
    assert client.frames == bodies
    assert client.channel.is_reading
    assert client.memory.used_bytes == 0


def test_connection_closed_in_its_slice_serves_nothing_in_later_turns() -> None:
    client = Client()
    client.seconds_per_frame = SLICE_SECONDS
    client.feed(framed(*[b"x" * 1000] * 10))
    served = len(client.frames)
    assert 0 < served < 10
    client.connection.close()
    client.channel.next_turn()
    assert len(client.frames) == served
    assert client.memory.used_bytes == 0


@pytest.mark.parametrize("size", [1, READ_BYTES_MAX * 3])
def test_request_that_waits_for_its_time_is_served_whole_after_release(size: int) -> None:
    client = Client()
    serve = client.serve

    def hold(connection: Connection, frame: memoryview, start: int, end: int, limit: int) -> int:
        connection.hold()
        return start - 4

    body = bytes(range(256)) * (size // 256) or b"x"
    client.connection._serve = hold
    client.feed(framed(body))
    assert client.frames == []
    assert not client.channel.is_reading
    assert client.memory.used_bytes == (len(body) + 4 if size > FREE_BYTES else 0)
    client.connection._serve = serve
    client.connection.release()
    client.channel.next_turn()
    client.memory.flushed()
    assert client.frames == [body]
    assert client.memory.used_bytes == 0
    client.feed(framed(b"next"))
    assert client.frames == [body, b"next"]


def test_large_request_that_waits_for_its_time_gives_its_memory_back_when_closed() -> None:
    client = Client()

    def hold(connection: Connection, frame: memoryview, start: int, end: int, limit: int) -> int:
        connection.hold()
        return start - 4

    client.connection._serve = hold
    client.feed(framed(b"x" * READ_BYTES_MAX))
    client.connection.close()
    client.connection.release()
    client.channel.next_turn()
    assert client.memory.used_bytes == 0
    assert not client.channel.is_reading


def test_large_request_closed_by_its_service_keeps_its_bytes_until_the_flush() -> None:
    """Its batches may be staged: the next large request must not be received over them."""
    client, other = Client(), None
    other = Client(client.memory)
    served: list[memoryview] = []

    def close(connection: Connection, frame: memoryview, start: int, end: int, limit: int) -> int:
        served.append(frame[start:end])
        connection.close()
        return end

    client.connection._serve = close
    data = framed(b"x" * READ_BYTES_MAX)
    while data:
        buffer = client.connection.buffer()
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        data = data[count:]
        client.connection.received(count)
    other.feed(framed(b"y" * READ_BYTES_MAX)[:-1])
    assert bytes(served[0]) == b"x" * READ_BYTES_MAX


def test_a_held_connection_serves_nothing_more_until_it_is_released() -> None:
    client = Client()
    serve = client.serve

    def serve_and_hold(
        connection: Connection, frame: memoryview, start: int, end: int, limit: int
    ) -> int:
        connection.hold()
        return serve(connection, frame, start, end, limit)

    client.connection._serve = serve_and_hold
    client.feed(framed(b"1", b"2", b"3"))
    assert client.frames == [b"1"]
    assert not client.channel.is_reading
    client.connection.sent()
    assert client.frames == [b"1"]
    client.connection.release()
    client.channel.next_turn()
    assert client.frames == [b"1", b"2"]
    client.connection._serve = serve
    client.connection.release()
    client.channel.next_turn()
    assert client.frames == [b"1", b"2", b"3"]
    assert client.channel.is_reading


def test_a_held_connection_may_be_closed_and_released() -> None:
    client = Client()
    client.connection.hold()
    client.channel.close()
    client.connection.release()
    assert not client.channel.is_reading


def test_a_peer_that_goes_on_leaves_frames_alone_that_are_being_served() -> None:
    memory = RequestMemory(64 << 20)
    held, busy = Client(memory), Client(memory)
    held.answer_at_once = None
    held.feed(framed(*[b"held up"] * (REPLIES_WAITING_MAX + 10)))
    assert len(held.frames) < REPLIES_WAITING_MAX + 10
    serve = busy.serve

    def serve_and_let_go(*arguments: object) -> int:
        end = serve(*arguments)  # type: ignore[arg-type]
        for reply in held.replies[:20]:
            if reply.pieces is None:
                reply.complete((b"ok",))
        return end

    busy.connection._serve = serve_and_let_go  # type: ignore[assignment]
    busy.feed(framed(b"first", b"second", b"third"))
    assert busy.frames == [b"first", b"second", b"third"]
    held.channel.next_turn()
    assert len(held.frames) == REPLIES_WAITING_MAX + 10


class Failing(Client):
    """Raises for each request that is called bad, after it has kept it."""

    def serve(
        self, connection: Connection, frame: memoryview, start: int, end: int, limit: int
    ) -> int:
        position = super().serve(connection, frame, start, end, limit)
        if self.frames[-1].startswith(b"bad"):
            raise ValueError("a bad request")
        return position


def assert_failed(client: Failing) -> None:
    assert [str(error) for error in client.errors] == ["a bad request"]
    assert client.connection.is_closed
    assert b"after" not in client.frames
    assert client.memory.used_bytes == 0


def test_exception_of_a_received_request_goes_to_the_guard() -> None:
    client = Failing()
    client.feed(framed(b"good", b"bad", b"after"))
    assert_failed(client)


def test_exception_of_a_large_request_goes_to_the_guard() -> None:
    client = Failing()
    client.feed(framed(b"bad".ljust(READ_BYTES_MAX * 2)))
    assert_failed(client)


def test_exception_of_a_request_served_after_a_reply_goes_to_the_guard() -> None:
    client = Failing()
    client.answer_at_once = None
    client.feed(framed(*[b"good"] * (REPLIES_WAITING_MAX + 1), b"bad", b"after"))
    client.replies[0].complete((b"ok",))
    client.channel.next_turn()
    assert_failed(client)


def test_exception_of_a_request_served_in_a_later_slice_goes_to_the_guard() -> None:
    client = Failing()
    client.seconds_per_frame = SLICE_SECONDS
    client.feed(framed(*[b"good"] * 3, b"bad", b"after"))
    assert not client.errors
    for _ in range(3):
        client.channel.next_turn()
    assert_failed(client)


def test_exception_of_a_callback_at_the_end_does_not_keep_the_others_from_being_called() -> None:
    client, called = Client(), []

    def fails() -> None:
        raise ValueError("at the end")

    client.connection.on_closed += [fails, lambda: called.append("second")]
    client.channel.close()
    assert called == ["second"]
    assert [str(error) for error in client.errors] == ["at the end"]
