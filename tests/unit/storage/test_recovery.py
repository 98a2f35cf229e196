import pytest

from ottla.model.errors import Damaged
from ottla.simulation.world.disk import SimulatedDisk
from ottla.storage import existing_log
from ottla.storage.config import LogConfig
from ottla.storage.log import Log
from ottla.storage.recovery import find_batch
from tests.unit.storage.making import (
    DIRECTORY,
    make_batch,
    make_disk,
    make_marker,
    open_log,
    put,
    read_all,
)

BIG = LogConfig(segment_bytes=1 << 20, index_interval_bytes=200)
PATH = f"{DIRECTORY}/{0:020d}.log"
BATCH_BYTES = make_batch().size


def killed(count: int, config: LogConfig = BIG) -> SimulatedDisk:
    """A disk whose log of `count` one-record batches was not closed."""
    disk = make_disk()
    log = open_log(disk, config)
    for number in range(count):
        put(log, make_batch(producer_id=3, sequence=number), leader_epoch=number // 4)
    disk.kill()
    return disk


def recovered(disk: SimulatedDisk, *, recovery_point: int = 0, power_lost: bool = False) -> Log:
    return open_log(disk, BIG, clean=False, recovery_point=recovery_point, power_lost=power_lost)


def test_a_killed_log_has_all_its_batches_epochs_and_producers() -> None:
    log = recovered(killed(10))
    assert [batch.base_offset for batch in read_all(log)] == list(range(10))
    assert log.epochs.entries() == [(0, 0), (1, 4), (2, 8)]
    assert log.producers.by_id[3].last_sequence == 9
    assert log.recovery_point == 0


@pytest.mark.parametrize("left", [1, 20, 60, BATCH_BYTES - 1])
def test_a_torn_tail_is_cut_at_the_last_whole_batch(left: int) -> None:
    disk = killed(10)
    disk.open(PATH).truncate(9 * BATCH_BYTES + left)
    log = recovered(disk)
    assert log.end_offset == 9
    assert disk.size(PATH) == 9 * BATCH_BYTES
    assert put(log, make_batch()) == [9]


@pytest.mark.parametrize("tail", [b"\x00" * 5000, b"\xff" * 100, b"\x02" * 300])
def test_garbage_after_the_last_batch_is_cut(tail: bytes) -> None:
    disk = killed(5)
    disk.open(PATH).append([tail])
    assert recovered(disk).end_offset == 5


@pytest.mark.parametrize("position", [0, 10, 16, 30, 80])
def test_damage_with_batches_after_it_is_neither_cut_nor_served(position: int) -> None:
    disk = killed(10)
    disk.flip_bit(PATH, 4 * BATCH_BYTES + position)
    with pytest.raises(Damaged) as caught:
        recovered(disk)
    assert (caught.value.path, caught.value.position) == (PATH, 4 * BATCH_BYTES)
    assert disk.size(PATH) == 10 * BATCH_BYTES


def test_after_a_power_cut_a_hole_in_what_was_not_synced_is_cut() -> None:
    disk = killed(10)
    disk.flip_bit(PATH, 4 * BATCH_BYTES + 80)
    log = recovered(disk, recovery_point=4, power_lost=True)
    assert log.end_offset == 4


def test_damage_below_the_recovery_point_is_never_cut() -> None:
    disk = killed(10)
    disk.flip_bit(PATH, 9 * BATCH_BYTES + 80)
    assert recovered(disk, recovery_point=9).end_offset == 9
    disk = killed(10)
    disk.flip_bit(PATH, 9 * BATCH_BYTES + 80)
    with pytest.raises(Damaged, match="synced"):
        recovered(disk, recovery_point=10, power_lost=True)


def test_a_log_that_ends_before_its_recovery_point_lost_something() -> None:
    disk = killed(10)
    disk.open(PATH).truncate(5 * BATCH_BYTES)
    with pytest.raises(Damaged, match="ends at offset 5"):
        recovered(disk, recovery_point=8, power_lost=True)


def test_damage_in_a_segment_that_has_a_successor_is_reported() -> None:
    small = LogConfig(segment_bytes=5 * BATCH_BYTES)
    disk = killed(12, small)
    disk.open(PATH).truncate(4 * BATCH_BYTES + 7)
    with pytest.raises(Damaged, match="later segment"):
        open_log(disk, small, clean=False)
    log = open_log(disk, small, clean=False, power_lost=True)
    assert log.end_offset == 4
    assert [segment.base_offset for segment in log.segments] == [0]


def test_aborted_transactions_are_indexed_again() -> None:
    disk = make_disk()
    log = open_log(disk, BIG)
    put(log, make_batch(2, producer_id=5, is_transactional=True))
    log.stage(make_marker(5, is_abort=True), 0, is_client=False)
    log.flush(open_log.__kwdefaults__["now"])
    expected = log.aborted_transactions(0, 10)
    assert len(expected) == 1
    disk.kill()
    assert recovered(disk).aborted_transactions(0, 10) == expected


def test_a_transaction_marker_that_is_none_is_damage_with_its_place() -> None:
    disk = make_disk()
    log = open_log(disk, BIG)
    put(log, make_batch(producer_id=5, is_transactional=True))
    marker = make_marker(5, is_abort=True)
    marker.base_offset = 1
    marker.assign(1, 0)
    marker.data[70] = 9
    marker.seal()
    disk.open(PATH).append([marker.data])
    disk.kill()
    with pytest.raises(Damaged) as caught:
        recovered(disk)
    assert (caught.value.path, caught.value.position) == (PATH, BATCH_BYTES)


def test_progress_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.storage.recovery._PROGRESS_BYTES", 3 * BATCH_BYTES)
    told: list[tuple[str, int, int]] = []
    disk = killed(10)
    existing_log.open_log(
        disk,
        DIRECTORY,
        recovered(killed(1)).topic_partition,
        BIG,
        clean=False,
        now=open_log.__kwdefaults__["now"],
        progress=lambda *step: told.append(step),
    )
    sizes = [done for _, done, _ in told]
    assert sizes == [3 * BATCH_BYTES, 6 * BATCH_BYTES, 9 * BATCH_BYTES]
    assert {(path, total) for path, _, total in told} == {(PATH, 10 * BATCH_BYTES)}


def test_a_batch_is_found_in_garbage_even_across_chunks() -> None:
    disk = make_disk()
    file = disk.open("/data/x", create=True)
    batch = make_batch(base_offset=9)
    for lead in (5, (1 << 20) - 30, (1 << 20) + 3):
        file.truncate(0)
        file.append([b"\x02" * 5, bytes(lead - 5), batch.data])
        assert find_batch(file, 0, file.size, 9) == lead
        assert find_batch(file, 0, file.size - 1, 9) is None
        assert find_batch(file, 0, file.size, 10) is None
