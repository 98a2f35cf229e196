"""The files of a log that begins, and the log in them."""

from random import Random

import pytest

from ottla.model.errors import Damaged
from ottla.model.types import TopicPartition, WallTime
from ottla.simulation.world.disk import SimulatedDisk
from ottla.storage.config import LogConfig
from ottla.storage.new_log import make_files, open_new_log
from ottla.storage.open_files import OpenFiles

NAME = TopicPartition("t", 3)
CONFIG = LogConfig()
NOW = WallTime(1000)


def new_disk() -> SimulatedDisk:
    disk = SimulatedDisk(Random(1))
    disk.make_directory("/logs")
    disk.sync_directory("/")
    return disk


def test_the_files_say_whose_they_are() -> None:
    disk = new_disk()
    make_files(disk, "/logs", NAME, b"i" * 16)
    make_files(disk, "/logs", NAME, b"j" * 16)
    assert disk.list("/logs/t-3") == ["00000000000000000000.log", "partition.metadata"]
    assert disk.read("/logs/t-3/partition.metadata").startswith(b"version: 0\ntopic_id: ampq")


def test_it_is_empty_and_to_be_synced_as_a_whole() -> None:
    disk = new_disk()
    make_files(disk, "/logs", NAME, bytes(16))
    log = open_new_log(OpenFiles(disk), "/logs", NAME, CONFIG, NOW)
    assert (log.log_start_offset, log.end_offset, log.recovery_point) == (0, 0, 0)
    assert log.is_unsynced
    for each in log.durability.begin_sync(log.end_offset):
        each.sync()
    disk.cut_power()
    assert disk.list("/logs/t-3") == ["00000000000000000000.log", "partition.metadata"]


def test_records_that_nobody_expects_are_left_alone() -> None:
    disk = new_disk()
    make_files(disk, "/logs", NAME, bytes(16))
    disk.open("/logs/t-3/00000000000000000000.log").append([b"records"])
    with pytest.raises(Damaged, match="has records already"):
        open_new_log(OpenFiles(disk), "/logs", NAME, CONFIG, NOW)
