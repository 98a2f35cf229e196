"""Disks that can lose their power: an ext4 image on a loop device for each node.

EXT4_IOC_SHUTDOWN without a flush of the journal ends a file system as a power cut does: data, new
files and renames that were not synced are gone. The machine goes on with the same boot id, as with
a disk that failed and is mounted again: a node has to notice the loss by the mount alone.
"""

import fcntl
import os
import struct
import subprocess
import time
from collections.abc import Collection
from pathlib import Path

EXT4_IOC_SHUTDOWN = 0x8004587D
WITHOUT_JOURNAL = 2
IMAGE_BYTES = 512 << 20
UMOUNT_SECONDS_MAX = 20.0


class Images:
    def __init__(self, directory: Path, node_ids: Collection[int]) -> None:
        self._directory = directory
        self._mounted: set[int] = set()
        self._held: dict[int, int] = {}  # The descriptor through which a mount is shut down.
        try:
            for node_id in node_ids:
                self._make(node_id)
        except BaseException:
            self.close()
            raise

    def write_back(self, node_id: int) -> None:
        """Sync all of it, as the kernel does when it has the time."""
        subprocess.run(["sync", "-f", self._point(node_id)], check=True)

    def lose_power(self, node_id: int) -> None:
        """From now on its files cannot be used; the node's process must be ended."""
        fcntl.ioctl(self._held[node_id], EXT4_IOC_SHUTDOWN, struct.pack("I", WITHOUT_JOURNAL))

    def restore_power(self, node_id: int) -> None:
        """What is left of them after the journal was replayed; no process has any open."""
        self._umount(node_id)
        self._mount(node_id)

    def close(self) -> None:
        for node_id in list(self._mounted):
            self._umount(node_id)

    def _make(self, node_id: int) -> None:
        image = self._image(node_id)
        with image.open("wb") as file:
            file.truncate(IMAGE_BYTES)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
        self._point(node_id).mkdir()
        self._mount(node_id)

    def _mount(self, node_id: int) -> None:
        point = self._point(node_id)
        subprocess.run(["mount", "-o", "loop", self._image(node_id), point], check=True)
        self._mounted.add(node_id)
        self._held[node_id] = os.open(point, os.O_RDONLY)

    def _umount(self, node_id: int) -> None:
        if node_id in self._held:
            os.close(self._held.pop(node_id))
        deadline = time.monotonic() + UMOUNT_SECONDS_MAX
        while True:
            done = subprocess.run(
                ["umount", self._point(node_id)], capture_output=True, check=False
            )
            if done.returncode == 0:
                break
            # A process that has just ended may hold it a moment longer.
            assert time.monotonic() < deadline, done.stderr.decode()
            time.sleep(0.05)
        self._mounted.discard(node_id)

    def _image(self, node_id: int) -> Path:
        return self._directory / f"disk-{node_id}.img"

    def _point(self, node_id: int) -> Path:
        return self._directory / f"node-{node_id}"


def can_lose_power() -> str | None:
    """Why not, as a sentence; None if this user and this machine can."""
    if os.geteuid() != 0:
        return "power can only be cut by root: it mounts ext4 images and shuts them down."
    for program in ("mkfs.ext4", "mount", "umount"):
        if not any((Path(at) / program).exists() for at in os.get_exec_path()):
            return f"power cannot be cut here: there is no {program}."
    if not Path("/dev/loop-control").exists():
        return "power cannot be cut here: there are no loop devices."
    return None
