"""What the names in a directory say of work that was not finished."""

from ottla.simulation.world.disk import SimulatedDisk
from ottla.storage.interrupted_work import InterruptedWork
from tests.unit.storage.making import DIRECTORY, make_batch, make_disk

ZERO, FIVE, NINE = (f"{offset:020d}" for offset in (0, 5, 9))


def put_files(disk: SimulatedDisk, *names: str, content: bytes = b"") -> None:
    for name in names:
        disk.open(f"{DIRECTORY}/{name}", create=True).append([content])


def finish(disk: SimulatedDisk) -> bool:
    names = set(disk.list(DIRECTORY))
    had_work = InterruptedWork(disk, DIRECTORY, names).finish()
    assert names == set(disk.list(DIRECTORY)), "it knows what it did"
    return had_work


def log_up_to(offset: int) -> bytes:
    return bytes(make_batch(offset).data)


def test_a_directory_at_rest_is_left_alone() -> None:
    disk = make_disk()
    put_files(disk, f"{ZERO}.log", f"{ZERO}.index", "leader-epoch-checkpoint")
    before = disk.operations
    assert not finish(disk)
    assert disk.operations == before


def test_what_was_being_deleted_goes() -> None:
    disk = make_disk()
    put_files(disk, f"{ZERO}.log.deleted", f"{ZERO}.index.deleted", f"{FIVE}.log")
    assert finish(disk)
    assert disk.list(DIRECTORY) == [f"{FIVE}.log"]


def test_while_one_file_is_cleaned_the_old_ones_count() -> None:
    disk = make_disk()
    put_files(disk, f"{ZERO}.log", f"{FIVE}.log", content=b"old")
    put_files(disk, f"{ZERO}.log.swap", f"{ZERO}.index.cleaned", content=b"new")
    assert finish(disk)
    assert disk.list(DIRECTORY) == [f"{ZERO}.log", f"{FIVE}.log"]
    assert disk.read(f"{DIRECTORY}/{ZERO}.log") == b"old"


def test_when_all_are_swap_files_they_replace_what_they_were_made_from() -> None:
    disk = make_disk()
    put_files(disk, f"{ZERO}.log", f"{ZERO}.txnindex", f"{ZERO}.snapshot", content=b"old")
    put_files(disk, f"{FIVE}.log", f"{FIVE}.snapshot", f"{NINE}.log", f"{NINE}.snapshot")
    put_files(disk, f"{ZERO}.log.swap", content=log_up_to(9))
    put_files(disk, f"{ZERO}.index.swap", content=b"new")
    assert finish(disk)
    assert disk.list(DIRECTORY) == [
        f"{ZERO}.index",
        f"{ZERO}.log",
        f"{ZERO}.snapshot",
        f"{NINE}.log",
        f"{NINE}.snapshot",
    ]
    assert disk.read(f"{DIRECTORY}/{ZERO}.log") == log_up_to(9)


def test_an_empty_segment_still_replaces_the_one_of_its_name() -> None:
    disk = make_disk()
    put_files(disk, f"{ZERO}.log", f"{ZERO}.txnindex", f"{FIVE}.log", content=b"old")
    put_files(disk, f"{ZERO}.log.swap")
    assert finish(disk)
    assert disk.list(DIRECTORY) == [f"{ZERO}.log", f"{FIVE}.log"]
    assert disk.read(f"{DIRECTORY}/{ZERO}.log") == b""


def test_indexes_follow_a_log_that_is_in_place_already() -> None:
    disk = make_disk()
    put_files(disk, f"{ZERO}.log", content=log_up_to(9))
    put_files(disk, f"{ZERO}.index.swap", f"{ZERO}.txnindex.swap", content=b"new")
    assert finish(disk)
    assert disk.list(DIRECTORY) == [f"{ZERO}.index", f"{ZERO}.log", f"{ZERO}.txnindex"]
