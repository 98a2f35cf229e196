from ottla.simulation.world.trace import LINES_MAX, Trace


def trace_of(*events: tuple[int, str, bytes]) -> str:
    moments = iter([now for now, _, _ in events])
    trace = Trace(lambda: next(moments))
    for _, what, data in events:
        trace.note(what, data)
    return trace.digest()


def test_two_traces_are_alike_only_if_everything_in_them_is() -> None:
    first = trace_of((1, "receives", b"a"), (2_000, "ends", b""))
    assert trace_of((1, "receives", b"a"), (2_000, "ends", b"")) == first
    assert trace_of((1, "receives", b"b"), (2_000, "ends", b"")) != first
    assert trace_of((1, "receives", b"a"), (9_000, "ends", b"")) != first
    assert trace_of((2_000, "ends", b""), (1, "receives", b"a")) != first


def test_only_the_last_lines_are_kept_and_all_are_told() -> None:
    trace = Trace(lambda: 0)
    told: list[str] = []
    trace.listener = told.append
    for number in range(LINES_MAX + 10):
        trace.note(f"event {number}")
    assert trace.events == len(told) == LINES_MAX + 10
    assert list(trace.lines) == told[10:]
