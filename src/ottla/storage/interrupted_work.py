"""What a process that died left half done in a partition directory: deletions and compactions.

A `.deleted` file goes. While any `.cleaned` file of a compaction is there, the old segments count
and the new files go; when all are `.swap`, the new ones count and replace the old. Whoever dies
here as well leaves names by which the next one decides the same: each step is synced before
the step that relies on it.
"""

from ottla.env.disk import Disk
from ottla.model.types import Offset
from ottla.storage.files import CLEANED, DELETED, LOG, PRODUCER_SNAPSHOT, SWAP, parse_file_name
from ottla.storage.segment import scan


class InterruptedWork:
    def __init__(self, disk: Disk, directory: str, names: set[str]) -> None:
        """`names` are those of the directory; they are kept up to date."""
        self._disk = disk
        self._directory = directory
        self._names = names

    def finish(self) -> bool:
        """False if there was none. The last of its changes are not synced yet."""
        marked = [
            (name, parsed)
            for name in sorted(self._names)
            if name.endswith((DELETED, CLEANED, SWAP))
            and (parsed := parse_file_name(name)) is not None
        ]
        cleaned = [(name, offset) for name, (offset, _, mark) in marked if mark == CLEANED]
        cleaned_from = min((offset for _, offset in cleaned), default=None)
        swaps: list[tuple[str, Offset, str]] = []
        for name, (offset, kind, mark) in marked:
            if mark == DELETED:
                self._remove(name)
            elif mark == SWAP and (cleaned_from is None or offset < cleaned_from):
                swaps.append((name, offset, kind))
            elif mark == SWAP:
                self._remove(name)
        if cleaned:
            # Without its `.cleaned` files a `.swap` file would count.
            self._disk.sync_directory(self._directory)
            for name, _ in cleaned:
                self._remove(name)
        self._put_in_place(swaps)
        return bool(marked)

    def _put_in_place(self, swaps: list[tuple[str, Offset, str]]) -> None:
        logs = [(name, offset) for name, offset, kind in swaps if kind == LOG]
        if logs:
            start = min(offset for _, offset in logs)
            end = max(self._end_of(name) for name, _ in logs)
            self._remove_replaced(start, max(end, start + 1))
            self._disk.sync_directory(self._directory)
        for name, _ in logs:
            self._rename(name)
        if logs:
            # From here on an index beside it is a new one.
            self._disk.sync_directory(self._directory)
        for name, _, kind in swaps:
            if kind != LOG:
                self._rename(name)

    def _remove_replaced(self, start: Offset, end: Offset) -> None:
        for name in sorted(self._names):
            parsed = parse_file_name(name)
            if parsed is None or parsed[2] or not start <= parsed[0] < end:
                continue
            if parsed[1] != PRODUCER_SNAPSHOT or parsed[0] != start:
                self._remove(name)

    def _end_of(self, name: str) -> Offset:
        file = self._disk.open(f"{self._directory}/{name}")
        end = 0
        for _, batch in scan(file, 0, file.size):
            end = batch.next_offset
        return end

    def _rename(self, name: str) -> None:
        final = name.removesuffix(SWAP)
        self._disk.rename(f"{self._directory}/{name}", f"{self._directory}/{final}")
        self._names.discard(name)
        self._names.add(final)

    def _remove(self, name: str) -> None:
        self._disk.remove(f"{self._directory}/{name}")
        self._names.discard(name)
