"""What a log directory writes down of its logs: how far synced, committed, cleaned; their start.

The recovery point is a promise: everything below it was synced. So it is lowered on disk before a
log is cut, and the line of a deleted log goes before another of its name begins.

The loop makes a draft of the files and a worker writes it, one draft at a time.
"""

from collections.abc import Mapping
from typing import Final

from ottla.env.disk import Disk
from ottla.model.errors import Damaged
from ottla.model.types import Offset, TopicPartition
from ottla.storage.checkpoint import decode_offsets, encode_offsets, replace_file, replace_files

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
CLEANED: Final = "cleaner-offset-checkpoint"

Offsets = dict[TopicPartition, Offset]


class Draft:
    """Contents of checkpoint files at one moment. `write` blocks, and may run in a worker."""

    def __init__(self, disk: Disk, path: str, files: Mapping[str, Offsets], *, sync: bool) -> None:
        # Copies: the loop changes its own while a worker reads these.
        self.files: dict[str, Offsets] = {name: dict(each) for name, each in files.items()}
        self.stale: set[TopicPartition] = set()  # Deleted logs that these files do not name.
        self._disk = disk
        self._path = path
        self._sync = sync

    def write(self) -> None:
        contents = {name: encode_offsets(offsets) for name, offsets in self.files.items()}
        if self._sync:
            replace_files(self._disk, self._path, contents)
            return
        for name, content in contents.items():
            replace_file(self._disk, f"{self._path}/{name}", content, sync=False)


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
        # Greatest offsets that the files on disk may state, whatever a write under way does.
        self._promised = {
            RECOVERY_POINTS: dict(self.recovery_points),
            CLEANED: dict(self.cleaned),
            HIGH_WATERMARKS: dict(self.high_watermarks),
        }

    def write(self, high_watermarks: Mapping[TopicPartition, Offset] | None) -> None:
        """Replace the files, blocking; that of the watermarks if they are given."""
        draft = self.draft(high_watermarks)
        draft.write()
        self.written(draft)

    def draft(self, high_watermarks: Mapping[TopicPartition, Offset] | None) -> Draft:
        """All files as of now. Call `written` once the draft is, and not if that fails."""
        files = {RECOVERY_POINTS: self.recovery_points, LOG_STARTS: self.log_starts}
        if high_watermarks is not None:
            files[HIGH_WATERMARKS] = self.high_watermarks = dict(high_watermarks)
        if self.cleaned != self._promised[CLEANED]:
            files[CLEANED] = self.cleaned
        draft = Draft(self._disk, self._path, files, sync=True)
        if high_watermarks is not None:
            draft.stale = set(self._stale)
        self._promise(draft)
        return draft

    def _promise(self, draft: Draft) -> None:
        for name, promised in self._promised.items():
            for topic_partition, offset in draft.files.get(name, {}).items():
                promised[topic_partition] = max(promised.get(topic_partition, 0), offset)

    def written(self, draft: Draft) -> None:
        self._stale -= draft.stale
        for name in self._promised:
            if name in draft.files:
                self._promised[name] = draft.files[name]

    def draft_high_watermarks(
        self, high_watermarks: Mapping[TopicPartition, Offset]
    ) -> Draft | None:
        """Watermarks alone, not synced; None if they are as before."""
        if high_watermarks == self.high_watermarks:
            return None
        self.high_watermarks = dict(high_watermarks)
        files = {HIGH_WATERMARKS: self.high_watermarks}
        draft = Draft(self._disk, self._path, files, sync=False)
        self._promise(draft)
        return draft

    def may_promise(self, topic_partition: TopicPartition, offset: Offset) -> bool:
        """True if a file may state that the log is synced, compacted or committed past `offset`."""
        return any(each.get(topic_partition, 0) > offset for each in self._promised.values())

    def forget(self, topic_partition: TopicPartition) -> None:
        """The log is gone; its lines go with the next writing."""
        offsets = (self.recovery_points, self.log_starts, self.high_watermarks, self.cleaned)
        for each in offsets:
            each.pop(topic_partition, None)
        self._stale.add(topic_partition)

    def is_stale(self, topic_partition: TopicPartition) -> bool:
        return topic_partition in self._stale

    def _read(self, name: str) -> Offsets:
        path = f"{self._path}/{name}"
        if not self._disk.exists(path):
            return {}
        try:
            return decode_offsets(path, self._disk.read(path))
        except Damaged as damage:
            self.notices.append(f"{damage}; it is taken to be empty")
            return {}
