"""A log directory on a simulated disk, opened as a broker opens it."""

from random import Random

from ottla.model.types import TopicPartition
from ottla.simulation.world.disk import SimulatedDisk
from ottla.storage.checkpoint import decode_offsets
from ottla.storage.config import LogConfig
from ottla.storage.directory import LogDirectory
from ottla.storage.directory_loader import load_logs
from ottla.storage.identity import MetaProperties
from tests.unit.storage.making import NOW

META = MetaProperties("cluster", 1, bytes(16))
NAME = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)
TOPIC_ID = bytes(range(16))
CONFIG = LogConfig(segment_bytes=1000)


def new_disk() -> SimulatedDisk:
    return SimulatedDisk(Random(1))


def opened(disk: SimulatedDisk, *, path: str = "/logs/a") -> LogDirectory:
    directory = LogDirectory.open(disk, path, reserve_bytes=1000)
    if directory.meta is None:
        directory.format(META)
    load_logs(directory, lambda _: CONFIG, NOW)
    return directory


def offsets(disk: SimulatedDisk, name: str) -> dict[TopicPartition, int]:
    return decode_offsets(name, disk.read(f"/logs/a/{name}"))
