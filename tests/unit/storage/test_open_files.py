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


def test_who_reopens_a_file_gets_the_one_that_somebody_still_sends_from() -> None:
    """Its truncations tell the sender that other bytes may be there."""
    disk = make_disk()
    for name in "xyz":
        disk.open(f"/data/{name}", create=True).append([b"abc"])
    files = OpenFiles(disk, files_max=1)
    sent = files.file("/data/x")
    files.file("/data/y")
    assert files.reopen("/data/x") is sent
    files.drop("/data/x")
    assert files.reopen("/data/x") is not sent, "it is another file of that name"


def test_a_file_that_nobody_has_is_opened_again() -> None:
    disk = make_disk()
    files = OpenFiles(disk, files_max=1)
    files.reopen("/data/x", create=True).append([b"abc"])
    files.file("/data/x")
    files.drop("/data/x")
    assert not disk.open_files
