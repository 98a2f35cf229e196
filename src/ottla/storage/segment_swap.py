"""Putting a cleaned segment in the place of those it was made from, so that no crash mixes them.

The names say how far it came. While any file is `.cleaned`, the old ones are whole and count. When
all are `.swap`, and the directory says so for good, the new ones count, and only then do the old
ones go. `loading` finishes what was interrupted, by the same rules.
"""

from collections.abc import Sequence

from ottla.env.disk import Disk
from ottla.model.types import Millis
from ottla.storage.deletion import Deletion
from ottla.storage.files import INDEXES, LOG, SWAP
from ottla.storage.segment import Segment


def swap_in(
    disk: Disk, cleaned: Segment, sources: Sequence[Segment], deletion: Deletion, due_ms: Millis
) -> None:
    """The files of `cleaned`, synced and marked, replace those of `sources`.

    The last renames, of indexes, are not synced yet; `loading` repeats them if they are lost.
    """
    kinds = [kind for kind in (LOG, *INDEXES) if disk.exists(cleaned.path(kind))]
    final = {kind: cleaned.path(kind).removesuffix(cleaned.mark) for kind in kinds}
    for kind in kinds:
        disk.rename(cleaned.path(kind), final[kind] + SWAP)
    disk.sync_directory(cleaned.directory)
    for source in sources:
        # The snapshot of producers where the group begins is that of the new segment, too.
        deletion.rename_away(source, due_ms, with_snapshot=source is not sources[0])
    disk.sync_directory(cleaned.directory)
    # The log goes first, for good: as long as it is `.swap`, a plain index beside it is an old one.
    disk.rename(final[LOG] + SWAP, final[LOG])
    disk.sync_directory(cleaned.directory)
    for kind in kinds[1:]:
        disk.rename(final[kind] + SWAP, final[kind])


def discard(disk: Disk, cleaned: Segment) -> None:
    """The log went on in another way meanwhile: nobody needs it."""
    for kind in (LOG, *INDEXES):
        if disk.exists(cleaned.path(kind)):
            disk.remove(cleaned.path(kind))
