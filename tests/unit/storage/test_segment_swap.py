"""One segment in the place of several, without a moment at which both or neither count."""

from ottla.model.types import WallTime
from ottla.storage.cleanable import cleanable
from ottla.storage.compaction import Cleaning, CleaningLimits
from ottla.storage.deletion import Deletion, remove_paths
from ottla.storage.log import Log
from ottla.storage.segment import Segment
from ottla.storage.segment_swap import discard, swap_in
from tests.unit.storage.making import DIRECTORY, NOW, fill, make_disk, open_log


def prepared() -> tuple[Log, list[Segment], Segment]:
    log = open_log(make_disk())
    fill(log, 20)
    log.sync()
    cleaning = Cleaning(log, cleanable(log, None, 20, NOW), NOW, CleaningLimits())
    sources = log.segments[:2]
    cleaned = cleaning.begin(sources)
    list(cleaning.copy(sources, cleaned))
    return log, sources, cleaned


def test_the_new_files_take_the_old_names_and_the_old_ones_wait_for_removal() -> None:
    log, sources, cleaned = prepared()
    second = f"{sources[1].base_offset:020d}"
    deletion = Deletion(log.disk, DIRECTORY)
    swap_in(log.disk, cleaned, sources, deletion, WallTime(NOW + 10))
    found = log.disk.list(DIRECTORY)
    assert f"{0:020d}.log" in found
    assert f"{0:020d}.index" in found
    assert f"{0:020d}.log.deleted" in found
    assert not {name for name in found if name.startswith(second) and "deleted" not in name}
    assert not {name for name in found if name.endswith((".swap", ".cleaned"))}
    assert f"{second}.snapshot.deleted" in found
    remove_paths(log.disk, deletion.take_due(WallTime(NOW + 10)))
    assert not {name for name in log.disk.list(DIRECTORY) if name.endswith(".deleted")}


def test_the_snapshot_at_the_beginning_of_a_group_stays() -> None:
    log, _, cleaned = prepared()
    discard(log.disk, cleaned)
    cleaning = Cleaning(log, cleanable(log, None, 20, NOW), NOW, CleaningLimits())
    sources = log.segments[1:3]
    cleaned = cleaning.begin(sources)
    list(cleaning.copy(sources, cleaned))
    swap_in(log.disk, cleaned, sources, Deletion(log.disk, DIRECTORY), NOW)
    assert f"{sources[0].base_offset:020d}.snapshot" in log.disk.list(DIRECTORY)
    assert f"{sources[1].base_offset:020d}.snapshot" not in log.disk.list(DIRECTORY)


def test_what_nobody_needs_is_removed() -> None:
    log, _, cleaned = prepared()
    assert {name for name in log.disk.list(DIRECTORY) if name.endswith(".cleaned")}
    discard(log.disk, cleaned)
    assert not {name for name in log.disk.list(DIRECTORY) if name.endswith(".cleaned")}
