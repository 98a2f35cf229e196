import errno
from random import Random

import pytest

from ottla.simulation.world.disk import Crashed, SimulatedDisk


def make_disk(seed: int = 1, **more: int) -> SimulatedDisk:
    disk = SimulatedDisk(Random(seed), **more)
    disk.make_directory("/a/b")
    disk.sync_directory("/")
    disk.sync_directory("/a")
    return disk


def test_it_is_a_disk() -> None:
    disk = make_disk()
    file = disk.open("/a/b/f", create=True)
    file.append([b"one", bytearray(b"two"), memoryview(b"three")])
    assert (file.size, file.read(3, 3), disk.read("/a/b/f")) == (11, b"two", b"onetwothree")
    file.truncate(4)
    assert (disk.size("/a/b/f"), disk.list("/a/b")) == (4, ["f"])
    disk.rename("/a/b/f", "/a/b/g")
    assert (disk.exists("/a/b/f"), disk.exists("/a/b/g")) == (False, True)
    assert (disk.is_directory("/a/b"), disk.is_directory("/a/b/g")) == (True, False)
    disk.remove("/a/b/g")
    disk.remove_directory("/a/b")
    assert disk.list("/a") == []
    assert file.read(0, 10) == b"onet"  # It is still open.


def test_errors_are_the_systems() -> None:
    disk = make_disk()
    with pytest.raises(FileNotFoundError):
        disk.open("/a/none")
    with pytest.raises(FileNotFoundError):
        disk.list("/none")
    disk.open("/a/b/f", create=True)
    with pytest.raises(OSError, match="not empty"):
        disk.remove_directory("/a/b")
    with pytest.raises(IsADirectoryError):
        disk.open("/a/b")


def test_synced_bytes_and_names_survive_power() -> None:
    disk = make_disk()
    file = disk.open("/a/f", create=True)
    file.append([b"kept"])
    file.sync()
    disk.sync_directory("/a")
    file.append([b"perhaps"])
    disk.cut_power()
    assert disk.read("/a/f").startswith(b"kept")


def test_unsynced_names_may_be_lost_and_kept() -> None:
    outcomes = set()
    for seed in range(40):
        disk = make_disk(seed)
        disk.open("/a/f", create=True)
        disk.sync_directory("/a")
        disk.rename("/a/f", "/a/g")
        disk.open("/a/h", create=True)
        disk.cut_power()
        outcomes.add(tuple(disk.list("/a")))
    assert outcomes == {("b", "f"), ("b", "g"), ("b", "f", "h"), ("b", "g", "h")}


def test_unsynced_writes_are_lost_torn_and_reordered() -> None:
    seen = set()
    for seed in range(300):
        disk = make_disk(seed)
        file = disk.open("/a/f", create=True)
        disk.sync_directory("/a")
        file.append([b"1" * 600])
        file.append([b"2" * 600])
        disk.cut_power()
        data = disk.read("/a/f")
        if data == b"":
            seen.add("nothing")
        elif data == b"1" * 600 + b"2" * 600:
            seen.add("all")
        elif data == b"1" * 512:
            seen.add("torn at a sector")
        elif data == bytes(600) + b"2" * 600:
            seen.add("a hole")
        elif data == bytes(1200):
            seen.add("zeros")
        assert set(data) <= set(b"12\x00")
    assert seen == {"nothing", "all", "torn at a sector", "a hole", "zeros"}


def test_a_kill_keeps_all_completed_writes() -> None:
    disk = make_disk()
    file = disk.open("/a/f", create=True)
    file.append([b"one"])
    disk.kill()
    assert disk.read("/a/f") == b"one"
    with pytest.raises(Crashed):
        file.append([b"two"])


def test_the_chosen_operation_kills_and_nothing_happens_after_it() -> None:
    sizes = set()
    for seed in range(50):
        disk = make_disk(seed)
        file = disk.open("/a/f", create=True)
        disk.crash_at = disk.operations + 1
        with pytest.raises(Crashed):
            file.append([b"0123456789"])
        with pytest.raises(Crashed):
            disk.read("/a/f")
        disk.kill()
        assert b"0123456789".startswith(disk.read("/a/f"))
        sizes.add(disk.size("/a/f"))
    assert {0, 10} <= sizes
    assert len(sizes) > 5


def test_a_full_disk_takes_what_fits() -> None:
    disk = make_disk(capacity_bytes=10)
    file = disk.open("/a/f", create=True)
    file.append([b"123456"])
    with pytest.raises(OSError, match="no space") as caught:
        file.append([b"789012"])
    assert caught.value.errno == errno.ENOSPC
    assert (disk.read("/a/f"), disk.free_bytes("/a")) == (b"1234567890", 0)
    file.truncate(2)
    assert disk.free_bytes("/a") == 8
    disk.remove("/a/f")
    assert disk.free_bytes("/a") == 10


def test_an_fsync_that_failed_once_lies_ever_after() -> None:
    disk = make_disk()
    file = disk.open("/a/f", create=True)
    disk.sync_directory("/a")
    file.append([b"gone"])
    disk.fail("sync", errno.EIO)
    with pytest.raises(OSError, match="simulated"):
        file.sync()
    file.sync()
    assert disk.read("/a/f") == b"gone"
    disk.cut_power()
    assert disk.read("/a/f") == b""


def test_failures_hit_the_chosen_operation_and_path_once() -> None:
    disk = make_disk()
    disk.fail("read", errno.EIO, path_contains="f2")
    disk.open("/a/f1", create=True)
    disk.open("/a/f2", create=True)
    disk.read("/a/f1")
    with pytest.raises(OSError, match="read"):
        disk.read("/a/f2")
    disk.read("/a/f2")


def test_a_flipped_bit_stays_flipped() -> None:
    disk = make_disk()
    file = disk.open("/a/f", create=True)
    disk.sync_directory("/a")
    file.append([b"\x00\x00"])
    file.sync()
    disk.flip_bit("/a/f", 1, 3)
    disk.cut_power()
    assert disk.read("/a/f") == b"\x00\x08"


def test_a_lock_excludes_until_it_is_released_or_its_holder_dies() -> None:
    disk = make_disk()
    lock = disk.lock("/a/.lock")
    with pytest.raises(BlockingIOError):
        disk.lock("/a/.lock")
    lock.release()
    disk.lock("/a/.lock")
    disk.kill()
    disk.lock("/a/.lock")


def test_a_power_cut_is_a_new_mount_and_a_kill_is_not() -> None:
    disk = make_disk()
    before = disk.mount_id("/")
    disk.kill()
    assert disk.mount_id("/") == before
    disk.cut_power()
    assert disk.mount_id("/") != before


def test_the_same_seed_loses_the_same() -> None:
    def run(seed: int) -> bytes:
        disk = make_disk(seed)
        file = disk.open("/a/f", create=True)
        disk.sync_directory("/a")
        for number in range(20):
            file.append([b"%d" % number * 100])
        disk.cut_power()
        return disk.read("/a/f")

    assert run(5) == run(5)
    assert len({run(seed) for seed in range(10)}) > 3


def test_a_simulated_file_cannot_be_given_to_the_system() -> None:
    disk = make_disk()
    with pytest.raises(OSError, match="no descriptor"):
        disk.open("/a/f", create=True).fileno()
