from ottla.broker.wire.memory import IDLE_BYTES_MAX, RequestMemory


class Connection:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def memory_is_free(self) -> None:
        self.told.append("free")

    def close(self) -> None:
        self.told.append("close")


def test_a_buffer_is_used_again() -> None:
    memory = RequestMemory(1 << 30)
    buffer = memory.borrow(300_000)
    assert len(buffer) >= 300_000
    memory.give_back(buffer)
    assert memory.borrow(290_000) is buffer


def test_only_what_has_arrived_is_counted() -> None:
    memory = RequestMemory(1 << 20)
    for _ in range(10):
        memory.borrow(1 << 20)
    assert memory.used_bytes == 0
    assert memory.hold(Connection(), 1000)
    assert memory.used_bytes == 1000


def test_beyond_the_bound_only_the_oldest_goes_on() -> None:
    memory = RequestMemory(1 << 20)
    first, second = Connection(), Connection()
    assert memory.hold(first, 600_000)
    assert not memory.hold(second, 600_000)
    assert memory.is_exhausted
    assert memory.hold(first, 600_000)


def test_those_who_wait_are_told_when_there_is_room() -> None:
    memory = RequestMemory(1 << 20)
    first, second = Connection(), Connection()
    buffer = memory.borrow(1 << 20)
    memory.hold(first, 1 << 20)
    memory.hold(second, 1000)
    memory.wait(second)
    memory.release_when_flushed(first, buffer)
    assert second.told == []
    memory.flushed()
    assert second.told == ["free"]
    assert memory.used_bytes == 1000


def test_the_next_to_wait_goes_on_when_the_oldest_is_done() -> None:
    memory = RequestMemory(1000)
    first, second, third = Connection(), Connection(), Connection()
    for connection in (first, second, third):
        memory.hold(connection, 900)
    memory.wait(second)
    memory.wait(third)
    memory.release(first)
    memory.flushed()
    assert (second.told, third.told) == (["free"], [])


def test_who_holds_memory_without_sending_is_closed_while_others_wait() -> None:
    memory = RequestMemory(1000)
    stalled, sending, waiting = Connection(), Connection(), Connection()
    memory.hold(stalled, 900)
    memory.close_stalled()
    assert stalled.told == [], "nobody waited"
    memory.hold(sending, 900)
    memory.hold(waiting, 900)
    memory.wait(waiting)
    memory.close_stalled()
    assert stalled.told == ["close"]
    assert sending.told == []


def test_idle_memory_is_bounded() -> None:
    memory = RequestMemory(1 << 30)
    buffers = [memory.borrow(IDLE_BYTES_MAX) for _ in range(3)]
    for buffer in buffers:
        memory.give_back(buffer)
    kept = [memory.borrow(IDLE_BYTES_MAX) for _ in range(3)]
    assert len([buffer for buffer in kept if buffer in buffers]) == 1
