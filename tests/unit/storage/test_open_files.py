from ottla.storage.open_files import OpenFiles, Recent
from tests.unit.storage.making import make_disk


def test_the_least_recently_used_goes_first() -> None:
    recent: Recent[str] = Recent(2)
    made: list[str] = []

    def get(key: str) -> str:
        def make() -> tuple[str, int]:
            made.append(key)
            return key.upper(), 1

        return recent.get(key, make)

    assert [get(key) for key in "abac"] == ["A", "B", "A", "C"]
    assert made == ["a", "b", "c"]
    get("a")
    assert made == ["a", "b", "c"]
    get("b")
    assert made == ["a", "b", "c", "b"]
    assert len(recent) == 2


def test_heavy_values_push_out_several() -> None:
    recent: Recent[int] = Recent(10)
    for key, weight in (("a", 3), ("b", 3), ("c", 9)):
        recent.get(key, lambda weight=weight: (weight, weight))
    assert len(recent) == 1


def test_one_value_stays_however_heavy() -> None:
    recent: Recent[int] = Recent(10)
    assert recent.get("a", lambda: (1, 100)) == 1
    assert len(recent) == 1


def test_dropping_what_is_not_there_is_nothing() -> None:
    recent: Recent[int] = Recent(1)
    recent.drop("a")
    recent.get("b", lambda: (2, 1))
    recent.clear()
    assert len(recent) == 0


def test_a_file_stays_open_until_it_is_dropped() -> None:
    disk = make_disk()
    disk.open("/data/x", create=True).append([b"abc"])
    files = OpenFiles(disk)
    first = files.file("/data/x")
    assert files.file("/data/x") is first
    files.drop("/data/x")
    assert files.file("/data/x") is not first
    files.keep("/data/x", first)
    assert files.file("/data/x") is first
    files.close()
