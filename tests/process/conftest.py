"""Brokers of a test's own, each a real process that is gone when the test ends."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conformance.broker_process import BrokerProcess, Ottla
from tests.process.disks import MB, mount

NewBroker = Callable[..., BrokerProcess]


@pytest.fixture
def new_broker(tmp_path: Path) -> Iterator[NewBroker]:
    """Makes brokers that are not started yet; settings as in `server.properties`."""
    made: list[BrokerProcess] = []

    def make(directory: Path | None = None, **settings: str) -> BrokerProcess:
        named = {key.replace("_", "."): value for key, value in settings.items()}
        made.append(BrokerProcess(Ottla(), directory or tmp_path / f"broker{len(made)}", named))
        return made[-1]

    yield make
    for broker in made:
        broker.kill()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 48 MB."""
    path = tmp_path / "small"
    mount(path, "-t", "tmpfs", "-o", "size=48m", "none")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


@pytest.fixture
def doomed_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system that `fail` can make fail."""
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("mkfs.ext4 is not installed.")
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(64 * MB)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    path = tmp_path / "doomed"
    mount(path, "-o", "loop", str(image))
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)
