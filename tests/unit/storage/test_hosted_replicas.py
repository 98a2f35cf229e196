from random import Random

from ottla.simulation.world.disk import SimulatedDisk
from ottla.storage.hosted_replicas import HOSTED, note_hosted, read_hosted, write_hosted

ONE = (bytes(range(16)), 0)
TWO = (bytes(range(16)), 12)
THREE = (b"\xff" * 16, 3)


def new_disk() -> SimulatedDisk:
    disk = SimulatedDisk(Random(1))
    disk.make_directory("/data")
    return disk


def test_what_is_noted_is_read() -> None:
    disk = new_disk()
    assert read_hosted(disk, "/data") == set()
    note_hosted(disk, "/data", ONE)
    write_hosted(disk, "/data", {*read_hosted(disk, "/data"), TWO})
    note_hosted(disk, "/data", THREE)
    disk.kill()
    assert read_hosted(disk, "/data") == {ONE, TWO, THREE}


def test_a_line_that_was_cut_off_costs_no_other() -> None:
    disk = new_disk()
    note_hosted(disk, "/data", ONE)
    file = disk.open(f"/data/{HOSTED}")
    file.append([b"\nAAECAwQFBgc"])
    note_hosted(disk, "/data", TWO)
    file.append([b"\n\xff\xfe 1\nx y\nAAECAwQFBgcICQoLDA0ODw -1\n"])
    assert read_hosted(disk, "/data") == {ONE, TWO}
