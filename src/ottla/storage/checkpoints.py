"""What a log directory writes down of its logs: how far synced, committed, cleaned; their start.

The recovery point is a promise: everything below it was synced. So it is lowered on disk before a
log is cut, and the line of a deleted log goes before another of its name begins.
"""

from collections.abc import Mapping
from typing import Final

from ottla.env.disk import Disk
from ottla.model.errors import Damaged
from ottla.model.types import Offset, TopicPartition
from ottla.storage.checkpoint import decode_offsets, encode_offsets, replace_file

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
CLEANED: Final = "cleaner-offset-checkpoint"


class Checkpoints:
    def __init__(self, disk: Disk, path: str) -> None:
        self.notices: list[str] = []
        self._disk = disk
        self._path = path
        self.recovery_points = self._read(RECOVERY_POINTS)
        self.log_starts = self._read(LOG_STARTS)
        self.high_watermarks = self._read(HIGH_WATERMARKS)
        self.cleaned = self._read(CLEANED)  # Where the next round of compaction begins.
        self._stale: set[TopicPartition] = set()  # Gone, but the files may still name them.

    def write(self, high_watermarks: Mapping[TopicPartition, Offset] | None) -> None:
        """Replace the files; that of the watermarks if they are given."""
        self._write(RECOVERY_POINTS, self.recovery_points)
        self._write(LOG_STARTS, self.log_starts)
        if high_watermarks is not None:
            self.high_watermarks = dict(high_watermarks)
            self._write(HIGH_WATERMARKS, self.high_watermarks)
            self._stale.clear()

    def note_high_watermarks(self, high_watermarks: Mapping[TopicPartition, Offset]) -> None:
        """Watermarks alone, so often that nobody waits for the disk."""
        if high_watermarks != self.high_watermarks:
            self.high_watermarks = dict(high_watermarks)
            self._write(HIGH_WATERMARKS, self.high_watermarks, sync=False)

    def note_cleaned(self, topic_partition: TopicPartition, offset: Offset) -> None:
        """A log was compacted up to `offset`, or cut there."""
        self.cleaned[topic_partition] = offset
        self._write(CLEANED, self.cleaned)

    def forget(self, topic_partition: TopicPartition) -> None:
        """The log is gone; its lines go with the next writing."""
        for offsets in (self.recovery_points, self.log_starts, self.high_watermarks):
            offsets.pop(topic_partition, None)
        if self.cleaned.pop(topic_partition, None) is not None:
            self._write(CLEANED, self.cleaned)
        self._stale.add(topic_partition)

    def is_stale(self, topic_partition: TopicPartition) -> bool:
        return topic_partition in self._stale

    def _read(self, name: str) -> dict[TopicPartition, Offset]:
        path = f"{self._path}/{name}"
        if not self._disk.exists(path):
            return {}
        try:
            return decode_offsets(path, self._disk.read(path))
        except Damaged as damage:
            self.notices.append(f"{damage}; it is taken to be empty")
            return {}

    def _write(
        self, name: str, offsets: Mapping[TopicPartition, Offset], *, sync: bool = True
    ) -> None:
        replace_file(self._disk, f"{self._path}/{name}", encode_offsets(offsets), sync=sync)
