from types import SimpleNamespace

import pytest

from ottla.model.types import TopicPartition
from ottla.simulation.history import History, Violation
from ottla.simulation.invariants import Invariants

PLACE = TopicPartition("topic-0", 0)


def machine_with(
    *, start: int, high_watermark: int, end: int, staged: int, size: int = 0
) -> SimpleNamespace:
    """As much of a machine as the invariants look at."""
    log = SimpleNamespace(
        log_start_offset=start, end_offset=end, staged_end=staged, size_bytes=size
    )
    partition = SimpleNamespace(name=PLACE, topic_id=b"id", log=log, high_watermark=high_watermark)
    partitions = SimpleNamespace(all=lambda: [partition])
    return SimpleNamespace(
        broker=SimpleNamespace(partitions=partitions), starts=1, partition=partition
    )


def watching(
    machine: SimpleNamespace, history: History | None = None, retention_bytes: int | None = None
) -> Invariants:
    return Invariants(machine, history or History(), retention_bytes)  # type: ignore[arg-type]


def test_offsets_in_their_order_are_fine() -> None:
    watching(machine_with(start=0, high_watermark=5, end=7, staged=9)).check()


@pytest.mark.parametrize("wrong", [(6, 5, 7, 9), (0, 8, 7, 9), (0, 5, 7, 6)])
def test_offsets_out_of_order_are_found(wrong: tuple[int, int, int, int]) -> None:
    start, high_watermark, end, staged = wrong
    machine = machine_with(start=start, high_watermark=high_watermark, end=end, staged=staged)
    with pytest.raises(Violation, match="high watermark"):
        watching(machine).check()


def test_a_high_watermark_that_goes_back_is_found_unless_the_broker_started_anew() -> None:
    machine = machine_with(start=0, high_watermark=5, end=7, staged=7)
    invariants = watching(machine)
    invariants.check()
    machine.partition.high_watermark = 4
    machine.starts = 2
    invariants.check()
    machine.partition.high_watermark = 3
    with pytest.raises(Violation, match="went back"):
        invariants.check()


def test_a_broker_that_is_down_has_nothing_to_check() -> None:
    watching(SimpleNamespace(broker=None, starts=1)).check()


def test_a_log_keeps_its_beginning_unless_someone_deletes_it() -> None:
    machine, history = machine_with(start=3, high_watermark=5, end=7, staged=7), History()
    with pytest.raises(Violation, match="begins at 3"):
        watching(machine, history).check()
    history.trims[PLACE].asked = 3
    watching(machine, history).check()


def test_what_was_deleted_does_not_come_back() -> None:
    history = History()
    history.trims[PLACE].asked = history.trims[PLACE].done = 4
    with pytest.raises(Violation, match="deleted up to 4, and begins at 3"):
        watching(machine_with(start=3, high_watermark=5, end=7, staged=7), history).check()


def test_retention_leaves_as_much_as_it_says() -> None:
    history = History()
    enough = machine_with(start=3, high_watermark=5, end=7, staged=7, size=1000)
    watching(enough, history, 1000).check()
    assert history.trims[PLACE].start_max == 3
    too_little = machine_with(start=4, high_watermark=5, end=7, staged=7, size=999)
    with pytest.raises(Violation, match="999 bytes left"):
        watching(too_little, history, 1000).check()
