from types import SimpleNamespace

import pytest

from ottla.model.types import TopicPartition
from ottla.simulation.history import Violation
from ottla.simulation.invariants import Invariants


def machine_with(*, start: int, high_watermark: int, end: int, staged: int) -> SimpleNamespace:
    """As much of a machine as the invariants look at."""
    log = SimpleNamespace(log_start_offset=start, end_offset=end, staged_end=staged)
    partition = SimpleNamespace(
        name=TopicPartition("topic", 0), topic_id=b"id", log=log, high_watermark=high_watermark
    )
    partitions = SimpleNamespace(all=lambda: [partition])
    return SimpleNamespace(
        broker=SimpleNamespace(partitions=partitions), starts=1, partition=partition
    )


def test_offsets_in_their_order_are_fine() -> None:
    Invariants(machine_with(start=0, high_watermark=5, end=7, staged=9)).check()


@pytest.mark.parametrize("wrong", [(6, 5, 7, 9), (0, 8, 7, 9), (0, 5, 7, 6)])
def test_offsets_out_of_order_are_found(wrong: tuple[int, int, int, int]) -> None:
    start, high_watermark, end, staged = wrong
    machine = machine_with(start=start, high_watermark=high_watermark, end=end, staged=staged)
    with pytest.raises(Violation, match="high watermark"):
        Invariants(machine).check()


def test_a_high_watermark_that_goes_back_is_found_unless_the_broker_started_anew() -> None:
    machine = machine_with(start=0, high_watermark=5, end=7, staged=7)
    invariants = Invariants(machine)
    invariants.check()
    machine.partition.high_watermark = 4
    machine.starts = 2
    invariants.check()
    machine.partition.high_watermark = 3
    with pytest.raises(Violation, match="went back"):
        invariants.check()


def test_a_broker_that_is_down_has_nothing_to_check() -> None:
    Invariants(SimpleNamespace(broker=None, starts=1)).check()
