"""Files of a log directory by which the next start knows how the last process ended there.

`.kafka_cleanshutdown` is Kafka's. Two are ours, each with the id of the mount in which it was
written: unsynced writes last as long as that, so a killed process is told from a loss of power.
"""

from contextlib import suppress
from typing import Final

from ottla.env.disk import Disk
from ottla.storage.checkpoint import decode_clean_shutdown, encode_clean_shutdown, replace_file

CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
BROKER_EPOCH: Final = "ottla.broker-epoch"  # Of the process that writes here now.
MOUNT_ID: Final = "ottla.mount-id"  # In which the last start recovered everything.


class RunMarks:
    def __init__(self, disk: Disk, path: str) -> None:
        """Reads the marks of the last process, and changes none."""
        self._disk = disk
        self._path = path
        self._mount_id = disk.mount_id(path)
        self.was_clean = self._exists(CLEAN_SHUTDOWN)
        self.broker_epoch = self._read_broker_epoch()  # None if it may have lost something.
        self.power_was_lost = not self.was_clean and self._power_was_lost()

    def begin(self) -> None:
        """From now on a stop that is not clean is noticed: call before the first write."""
        if self._exists(CLEAN_SHUTDOWN):
            self._disk.remove(self._file(CLEAN_SHUTDOWN))
            self._disk.sync_directory(self._path)

    def note_recovered(self) -> None:
        """Every log is loaded."""
        replace_file(self._disk, self._file(MOUNT_ID), self._mount_id.encode(), sync=False)

    def note_broker_epoch(self, broker_epoch: int) -> None:
        """Of this process. If it is killed while the disk stays mounted, it has lost nothing."""
        text = f"{self._mount_id}\n{broker_epoch}"
        replace_file(self._disk, self._file(BROKER_EPOCH), text.encode(), sync=False)

    def end_cleanly(self, broker_epoch: int) -> None:
        replace_file(self._disk, self._file(CLEAN_SHUTDOWN), encode_clean_shutdown(broker_epoch))

    def remove(self) -> None:
        """The disk failed: nothing that was not synced counts.

        Where these cannot be removed, the file system cannot be used until it is mounted again,
        under another id.
        """
        for name in (BROKER_EPOCH, MOUNT_ID):
            with suppress(OSError):
                self._disk.remove(self._file(name))

    def _read_broker_epoch(self) -> int | None:
        if self.was_clean:
            return decode_clean_shutdown(self._disk.read(self._file(CLEAN_SHUTDOWN)))
        if not self._mount_id or not self._exists(BROKER_EPOCH):
            return None
        mount_id, _, epoch = self._read(BROKER_EPOCH).partition("\n")
        return int(epoch) if mount_id == self._mount_id and epoch.isdecimal() else None

    def _power_was_lost(self) -> bool:
        """Also by a file system that was mounted again. True if unknown: then a hole in what was
        not synced is no damage.
        """
        if not self._mount_id or not self._exists(MOUNT_ID):
            return True
        return self._read(MOUNT_ID) != self._mount_id

    def _exists(self, name: str) -> bool:
        return self._disk.exists(self._file(name))

    def _read(self, name: str) -> str:
        return self._disk.read(self._file(name)).decode(errors="replace")

    def _file(self, name: str) -> str:
        return f"{self._path}/{name}"
