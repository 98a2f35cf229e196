from ottla.broker.memory import IDLE_BYTES_MAX, RequestMemory


def test_a_buffer_is_used_again() -> None:
    memory = RequestMemory(1 << 30)
    buffer = memory.borrow(300_000)
    assert buffer is not None
    assert len(buffer) >= 300_000
    memory.give_back(buffer)
    assert memory.borrow(290_000) is buffer


def test_what_is_borrowed_is_bounded_but_one_is_always_served() -> None:
    memory = RequestMemory(1 << 20)
    alone = memory.borrow(2 << 20)
    assert alone is not None
    assert memory.borrow(1 << 18) is None
    memory.give_back(alone)
    assert memory.borrow(1 << 18) is not None


def test_those_who_wait_are_told_when_there_is_room() -> None:
    memory = RequestMemory(1 << 20)
    buffer = memory.borrow(1 << 20)
    assert buffer is not None
    told: list[str] = []
    memory.when_free(lambda: told.append("now"))
    memory.give_back_when_flushed(buffer)
    assert told == []
    memory.flushed()
    assert told == ["now"]
    assert memory.used_bytes == 0


def test_idle_memory_is_bounded() -> None:
    memory = RequestMemory(1 << 30)
    buffers = [memory.borrow(IDLE_BYTES_MAX) for _ in range(3)]
    for buffer in buffers:
        assert buffer is not None
        memory.give_back(buffer)
    kept = [memory.borrow(IDLE_BYTES_MAX) for _ in range(3)]
    assert len([buffer for buffer in kept if buffer in buffers]) == 1
