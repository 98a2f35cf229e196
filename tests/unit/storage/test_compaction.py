"""A compacted log is a dictionary whose offsets never change."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.model.errors import Damaged
from ottla.model.types import WallTime
from ottla.records.batch import Batch
from ottla.records.record import Record, build_batch, read_records
from ottla.storage.cleanable import cleanable
from ottla.storage.compaction import STEP_RECORDS, Cleaning, CleaningLimits
from ottla.storage.log import Log
from ottla.storage.offset_map import ENTRY_BYTES
from tests.unit.storage.making import (
    DIRECTORY,
    NOW,
    SMALL,
    clean_log,
    make_batch,
    make_disk,
    make_marker,
    open_log,
    put,
    read_all,
    remove_deleted,
    retain,
)

CONFIG = replace(SMALL, is_compacted=True, is_deleted=False, delete_retention_ms=1000)

Pair = tuple[bytes, bytes | None]


def write(log: Log, *batches: list[Pair], codec: int = 0, now: int = NOW) -> None:
    for pairs in batches:
        records = [Record(i, now, key, value) for i, (key, value) in enumerate(pairs)]
        put(log, Batch(build_batch(records, codec=codec)), now=now)


def records_of(log: Log, start: int | None = None) -> list[Record]:
    """What a consumer gets that begins at `start`."""
    found = [
        record for batch in read_all(log, start=start) for record in read_records(batch, 10**6)
    ]
    return [record for record in found if start is None or record.offset >= start]


def as_dictionary(records: list[Record]) -> dict[bytes | None, bytes | None]:
    return {record.key: record.value for record in records}


def filled() -> Log:
    log = open_log(make_disk(), CONFIG)
    for n in range(60):
        write(log, [(b"key%d" % (n % 4), b"%d " % n * 20)])
    log.roll(NOW)
    return log


def test_only_the_latest_value_of_each_key_is_left() -> None:
    log = filled()
    before = records_of(log)
    assert clean_log(log) == 60
    assert records_of(log) == before[-4:]
    assert log.size_bytes < 4 * 200
    assert (log.log_start_offset, log.end_offset) == (0, 60)


def test_cleaned_segments_are_merged_when_they_are_cleaned_again() -> None:
    log = filled()
    count = len(log.segments)
    clean_log(log)
    assert len(log.segments) == count
    clean_log(log)
    assert len(log.segments) == 2
    assert len(records_of(log)) == 4
    names = {name for name in log.disk.list(DIRECTORY) if not name.endswith(".deleted")}
    assert {name for name in names if name.endswith(".snapshot")} == {f"{60:020d}.snapshot"}
    remove_deleted(log, NOW + 11)
    assert set(log.disk.list(DIRECTORY)) == names


def test_a_cleaned_log_is_opened_again_as_it_was() -> None:
    log = filled()
    clean_log(log)
    expected = records_of(log)
    log.close()
    again = open_log(log.disk, CONFIG)  # type: ignore[arg-type]
    assert records_of(again) == expected
    again.abandon()
    recovered = open_log(log.disk, CONFIG, clean=False, recovery_point=0)  # type: ignore[arg-type]
    assert records_of(recovered) == expected
    assert recovered.end_offset == 60


def test_tombstones_stay_for_their_retention_and_then_go() -> None:
    log = open_log(make_disk(), CONFIG)
    write(log, [(b"a", b"1"), (b"b", b"2")], [(b"a", None)])
    log.roll(NOW)
    write(log, [(b"c", b"3")])
    log.roll(NOW)
    end = clean_log(log, now=NOW)
    assert as_dictionary(records_of(log)) == {b"b": b"2", b"a": None, b"c": b"3"}
    write(log, [(b"d", b"4")])
    log.roll(NOW)
    end = clean_log(log, cleaned_to=end, now=NOW + 999)
    assert as_dictionary(records_of(log))[b"a"] is None
    write(log, [(b"e", b"5")])
    log.roll(NOW)
    clean_log(log, cleaned_to=end, now=NOW + 1000)
    assert b"a" not in as_dictionary(records_of(log))
    assert as_dictionary(records_of(log))[b"b"] == b"2"


def test_a_map_that_is_too_small_cleans_in_portions() -> None:
    log = open_log(make_disk(), CONFIG)
    for n in range(200):
        write(log, [(b"key%d" % (n % 50), b"%d" % n)])
    log.roll(NOW)
    limits = CleaningLimits(map_bytes_max=20 * ENTRY_BYTES, map_load_factor=0.9)
    end, rounds = 0, 0
    while end < 200:
        reached = clean_log(log, cleaned_to=end, limits=limits)
        assert reached > end
        end, rounds = reached, rounds + 1
        assert len(as_dictionary(records_of(log))) == 50
    assert rounds > 5
    assert [record.offset for record in records_of(log)] == list(range(150, 200))


def test_the_last_batch_of_a_producer_outlives_its_records() -> None:
    log = open_log(make_disk(), CONFIG)
    for sequence in range(3):
        put(log, make_batch(producer_id=5, sequence=sequence, key=b"k"))
    for _ in range(10):
        put(log, make_batch(key=b"k"))
    log.roll(NOW)
    clean_log(log)
    batches = read_all(log)
    assert [(batch.base_offset, batch.count) for batch in batches] == [(2, 0), (12, 1)]
    assert (batches[0].producer_id, batches[0].base_sequence) == (5, 2)
    for name in log.disk.list(DIRECTORY):
        if name.endswith(".snapshot"):
            log.disk.remove(f"{DIRECTORY}/{name}")
    log.abandon()
    again = open_log(log.disk, CONFIG, clean=False)  # type: ignore[arg-type]
    assert again.producers.by_id[5].last_sequence == 2


def test_the_end_of_what_was_cleaned_is_kept_though_empty() -> None:
    log = open_log(make_disk(), CONFIG)
    write(log, [(b"a", b"1")], [(b"a", None)])
    log.roll(NOW)
    end = clean_log(log)
    write(log, [(b"a", b"2")], [(b"a", None)])
    log.roll(NOW)
    end = clean_log(log, cleaned_to=end)
    assert end == 4
    write(log, [(b"b", None)])
    log.roll(NOW)
    clean_log(log, cleaned_to=end, now=NOW + 5000)
    assert read_all(log)[-1].next_offset == 5


def test_aborted_records_go_and_markers_follow_later() -> None:
    log = open_log(make_disk(), CONFIG)
    put(log, make_batch(producer_id=9, is_transactional=True, key=b"a"))
    log.stage(make_marker(9, is_abort=True), 0, is_client=False)
    log.flush(NOW)
    put(log, make_batch(producer_id=9, sequence=1, is_transactional=True, key=b"b"))
    log.stage(make_marker(9, is_abort=False), 0, is_client=False)
    log.flush(NOW)
    log.roll(NOW)
    assert len(log.aborted_transactions(0, 4)) == 1
    clean_log(log)
    assert [(each.base_offset, each.is_control) for each in read_all(log)] == [
        (1, True),
        (2, False),
        (3, True),
    ]
    assert len(log.aborted_transactions(0, 4)) == 1, "a consumer that reads the marker needs it"
    clean_log(log, now=NOW + 1)
    assert log.aborted_transactions(0, 4) == []
    clean_log(log, now=NOW + 1001)
    assert [each.base_offset for each in read_all(log)] == [2, 3]


def test_a_transaction_whose_marker_lies_beyond_is_known_to_be_aborted() -> None:
    log = open_log(make_disk(), CONFIG)
    put(log, make_batch(producer_id=9, is_transactional=True, key=b"a"))
    log.roll(NOW)
    log.stage(make_marker(9, is_abort=True), 0, is_client=False)
    log.flush(NOW)
    clean_log(log)
    assert [each.count for each in read_all(log)] == [0, 1]
    assert len(log.aborted_transactions(0, 2)) == 1


def test_open_transactions_are_not_touched() -> None:
    log = open_log(make_disk(), CONFIG)
    write(log, [(b"a", b"1")])
    log.roll(NOW)
    put(log, make_batch(producer_id=9, is_transactional=True, key=b"a"))
    log.roll(NOW)
    assert cleanable(log, None, log.last_stable_offset(2), NOW).end == 1


def test_a_reader_goes_on_with_the_file_it_has() -> None:
    log = filled()
    piece = log.read(0, 500, end_offset=60)
    assert piece is not None
    before = piece.read()
    clean_log(log)
    clean_log(log)
    assert piece.read() == before


def test_a_log_that_went_on_meanwhile_is_left_alone() -> None:
    log = filled()
    log.sync()
    cleaning = Cleaning(log, cleanable(log, None, 60, NOW), NOW, CleaningLimits())
    list(cleaning.gather())
    group = cleaning.groups()[0]
    cleaned = cleaning.begin(group)
    list(cleaning.copy(group, cleaned))
    log.advance_log_start(15)
    assert retain(log, NOW, 60)
    before = records_of(log)
    assert not log.replace_segments(group, cleaned, NOW)
    assert records_of(log) == before
    assert not [name for name in log.disk.list(DIRECTORY) if name.endswith(".cleaned")]


def test_damage_is_named_and_nothing_is_changed() -> None:
    disk = make_disk()
    log = open_log(disk, CONFIG)
    for n in range(30):
        write(log, [(b"key%d" % (n % 4), b"%d " % n * 20)])
    log.roll(NOW)
    log.sync()
    path = log.segments[1].log_path
    disk.flip_bit(path, 150)
    with pytest.raises(Damaged, match="not cleaned") as damage:
        clean_log(log)
    assert damage.value.path == path


def test_small_batches_of_many_records_are_steps_of_their_own() -> None:
    log = open_log(make_disk(), replace(CONFIG, segment_bytes=1 << 20))
    many = [(b"k", b"")] * STEP_RECORDS
    write(log, many, many, codec=4)
    log.roll(NOW)
    log.sync()
    part = cleanable(log, 0, log.end_offset, NOW)
    cleaning = Cleaning(log, part, NOW, CleaningLimits())
    assert len(list(cleaning.gather())) == 3
    (group,) = cleaning.groups()
    assert len(list(cleaning.copy(group, cleaning.begin(group)))) == 3


def test_records_that_make_no_sense_are_damage() -> None:
    log = open_log(make_disk(), CONFIG)
    data = build_batch([Record(0, NOW, b"k", b"v")])
    data[61] = 0x7F
    batch = Batch(data)
    batch.seal()
    put(log, batch)
    log.roll(NOW)
    with pytest.raises(Damaged) as damage:
        clean_log(log)
    assert damage.value.path == log.segments[0].log_path


KEYS = st.sampled_from([b"a", b"b", b"c", b"d", b"e"])
BATCHES = st.lists(
    st.tuples(
        st.lists(
            st.tuples(KEYS, st.one_of(st.none(), st.binary(min_size=1, max_size=60))),
            min_size=1,
            max_size=5,
        ),
        st.integers(0, 4),
        st.sampled_from(["", "", "", "roll", "clean", "restart"]),
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=80, deadline=None)
@given(batches=BATCHES, start=st.integers(0, 60), map_keys=st.sampled_from([16, 1000]))
def test_a_compacted_log_equals_a_dictionary(
    batches: list[tuple[list[Pair], int, str]], start: int, map_keys: int
) -> None:
    config = replace(CONFIG, segment_bytes=600)
    log = open_log(make_disk(), config)
    limits = CleaningLimits(map_bytes_max=map_keys * ENTRY_BYTES)
    written: list[Record] = []
    end, now = 0, int(NOW)
    for pairs, codec, then in batches:
        records = [
            Record(log.end_offset + i, now, key, value) for i, (key, value) in enumerate(pairs)
        ]
        written += records
        write(log, pairs, codec=codec, now=now)
        if then == "roll":
            log.roll(WallTime(now))
        elif then == "clean":
            now += 700
            end = clean_log(log, cleaned_to=end, now=now, limits=limits)
        elif then == "restart":
            log.close()
            log = open_log(log.disk, config)  # type: ignore[arg-type]
    log.roll(WallTime(now))
    clean_log(log, cleaned_to=end, now=now, limits=limits)
    assert log.end_offset == len(written)

    model = {record.key: record.value for record in written}
    found = records_of(log)
    assert all(written[record.offset] == record for record in found), "nothing is changed"
    seen = as_dictionary(found)
    for key, value in model.items():
        assert seen.get(key) == value, "at most a tombstone may be gone"
    # From wherever one reads: every key that was written from there on ends with its last value.
    first = min(start, log.end_offset)
    tail = as_dictionary(records_of(log, first))
    for record in written[first:]:
        assert tail.get(record.key) == model[record.key]
