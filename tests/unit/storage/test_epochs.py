from hypothesis import given
from hypothesis import strategies as st

from ottla.storage.epochs import LeaderEpochs


def epochs_of(*entries: tuple[int, int]) -> LeaderEpochs:
    return LeaderEpochs(list(entries))


def test_an_epoch_is_noted_once() -> None:
    epochs = LeaderEpochs()
    epochs.assign(3, 10)
    assert epochs.is_dirty
    epochs.is_dirty = False
    epochs.assign(3, 20)
    assert epochs.entries() == [(3, 10)]
    assert not epochs.is_dirty
    assert epochs.latest == 3


def test_an_entry_that_contradicts_earlier_ones_replaces_them() -> None:
    epochs = epochs_of((1, 10), (2, 20), (4, 30))
    epochs.assign(3, 15)
    assert epochs.entries() == [(1, 10), (3, 15)]


def test_an_epoch_without_records_is_replaced_by_the_next() -> None:
    epochs = epochs_of((1, 10))
    epochs.assign(2, 10)
    assert epochs.entries() == [(2, 10)]


def test_the_end_of_an_epoch_is_where_the_next_begins() -> None:
    epochs = epochs_of((2, 10), (4, 30), (5, 50))
    assert epochs.end_offset_for(5, 80) == (5, 80)
    assert epochs.end_offset_for(4, 80) == (4, 50)
    assert epochs.end_offset_for(3, 80) == (2, 30)
    assert epochs.end_offset_for(2, 80) == (2, 30)
    assert epochs.end_offset_for(1, 80) == (1, 10)
    assert epochs.end_offset_for(6, 80) == (-1, -1)
    assert epochs.end_offset_for(-1, 80) == (-1, -1)
    assert LeaderEpochs().end_offset_for(0, 0) == (-1, -1)


def test_truncation_at_the_end_drops_what_began_there() -> None:
    epochs = epochs_of((2, 10), (4, 30), (5, 50))
    epochs.truncate_from_end(30)
    assert epochs.entries() == [(2, 10)]
    assert epochs.latest == 2


def test_truncation_at_the_start_moves_the_epoch_in_force() -> None:
    epochs = epochs_of((2, 10), (4, 30), (5, 50))
    epochs.truncate_from_start(35)
    assert epochs.entries() == [(4, 35), (5, 50)]
    epochs.truncate_from_start(50)
    assert epochs.entries() == [(5, 50)]
    epochs.is_dirty = False
    epochs.truncate_from_start(50)
    assert not epochs.is_dirty


def test_clearing_forgets_all() -> None:
    epochs = epochs_of((2, 10))
    epochs.clear()
    assert epochs.entries() == []
    assert epochs.latest == -1
    assert epochs.is_dirty


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99)), max_size=12))
def test_epochs_and_offsets_only_grow(entries: list[tuple[int, int]]) -> None:
    epochs = LeaderEpochs()
    for epoch, offset in entries:
        epochs.assign(epoch, offset)
    kept = epochs.entries()
    assert kept == sorted(kept)
    assert len({offset for _, offset in kept}) == len({epoch for epoch, _ in kept}) == len(kept)
    for epoch, offset in kept:
        assert epochs.epoch_of(offset) == epoch


@given(
    steps=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 5)), max_size=12),
    known_from=st.integers(0, 60),
    known_to=st.integers(0, 60),
)
def test_what_lies_in_the_log_is_found_whatever_the_file_knew(
    steps: list[tuple[int, int]], known_from: int, known_to: int
) -> None:
    epoch, offset = 0, 0
    batches, whole = [], LeaderEpochs()
    for later, size in steps:
        epoch += later
        batches.append((epoch, offset))
        whole.assign(epoch, offset)
        offset += size
    epochs = LeaderEpochs(whole.entries())
    epochs.truncate_from_start(known_from)
    epochs.truncate_from_end(known_to)
    for batch in batches:
        epochs.found(*batch)
    epochs.truncate_from_end(offset)
    assert epochs.entries() == whole.entries()


def test_a_batch_of_no_epoch_says_nothing() -> None:
    epochs = LeaderEpochs()
    epochs.found(-1, 0)
    assert epochs.entries() == []


def test_what_lies_in_the_log_counts_more_than_what_the_file_says() -> None:
    epochs = epochs_of((1, 10), (2, 50))
    epochs.found(3, 40)
    assert epochs.entries() == [(1, 10), (3, 40)]
