from ottla.storage.deletion import Deletion, remove_paths
from tests.unit.storage.making import DIRECTORY, NOW, fill, make_disk, open_log


def test_a_segment_is_renamed_then_removed_after_the_delay() -> None:
    disk = make_disk()
    log = open_log(disk)
    fill(log, 12)
    oldest, second = log.segments[0], log.segments[1]
    deletion = Deletion(disk, DIRECTORY)
    before = set(disk.list(DIRECTORY))
    deletion.rename_away(oldest, NOW + 100)
    renamed = set(disk.list(DIRECTORY)) - before
    assert f"{oldest.base_offset:020d}.log.deleted" in renamed
    assert not disk.exists(oldest.log_path)
    assert deletion.take_due(NOW + 99) == []
    assert renamed <= set(disk.list(DIRECTORY))
    remove_paths(disk, deletion.take_due(NOW + 100))
    assert deletion.take_due(NOW + 100) == []
    assert not renamed & set(disk.list(DIRECTORY))
    assert disk.exists(second.log_path)


def test_a_reader_keeps_its_bytes() -> None:
    disk = make_disk()
    log = open_log(disk)
    fill(log, 12)
    piece = log.read(0, 300, end_offset=log.end_offset)
    assert piece is not None
    expected = piece.read()
    deletion = Deletion(disk, DIRECTORY)
    deletion.rename_away(log.segments[0], 0)
    remove_paths(disk, deletion.take_due(0))
    assert piece.read() == expected
    assert not disk.exists(log.segments[0].log_path)


def test_snapshots_past_an_offset_go() -> None:
    disk = make_disk()
    log = open_log(disk)
    fill(log, 12)
    bases = [segment.base_offset for segment in log.segments]
    kept, is_any_gone = Deletion(disk, DIRECTORY).rename_snapshots_past(bases[1])
    assert (kept, is_any_gone) == ([bases[1]], True)
    left = [name for name in disk.list(DIRECTORY) if name.endswith(".snapshot")]
    assert left == [f"{bases[1]:020d}.snapshot"]


def test_removal_takes_directories_with_all_in_them_and_passes_over_what_is_gone() -> None:
    disk = make_disk()
    disk.make_directory("/data/gone-delete/made/by/hand")
    disk.open("/data/gone-delete/made/file", create=True)
    disk.open("/data/kept", create=True)
    paths = ["/data/never-there", "/data/gone-delete", "/data/gone-delete/made"]
    remove_paths(disk, paths)
    assert disk.list("/data") == ["kept", "t-0"]
