from pathlib import Path

from ottla.env.disk import real_disk
from ottla.env.files import FileRange


def test_a_range_stays_readable_after_unlink(tmp_path: Path) -> None:
    disk = real_disk()
    path = str(tmp_path / "f")
    file = disk.open(path, create=True)
    file.append([b"0123456789"])
    piece = FileRange(file, 3, 4)
    disk.remove(path)
    del file
    assert piece.read() == b"3456"
    assert "3, 4" in repr(piece)


def test_the_rest_of_a_range_keeps_its_truncation_count(tmp_path: Path) -> None:
    file = real_disk().open(str(tmp_path / "f"), create=True)
    file.append([b"0123456789"])
    piece = FileRange(file, 3, 4)
    assert piece.behind(1).read() == b"456"
    file.truncate(2)
    file.append([b"23456789"])
    assert piece.behind(1).truncations == piece.truncations != file.truncations
