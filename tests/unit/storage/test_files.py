import pytest

from ottla.storage.files import LOG, TIME_INDEX, file_name, parse_file_name


def test_names_have_twenty_digits() -> None:
    assert file_name(42, LOG) == "00000000000000000042.log"
    assert parse_file_name(file_name(42, TIME_INDEX)) == (42, TIME_INDEX, "")


@pytest.mark.parametrize("mark", [".deleted", ".cleaned", ".swap"])
def test_marks_are_told_apart(mark: str) -> None:
    assert parse_file_name(f"00000000000000000007.log{mark}") == (7, LOG, mark)


@pytest.mark.parametrize(
    "name",
    [
        "leader-epoch-checkpoint",
        "7.log",
        "00000000000000000007.log.bak",
        "00000000000000000007-0000000001.checkpoint",  # A snapshot of the metadata log.
        "partition.metadata",
    ],
)
def test_other_files_are_none_of_ours(name: str) -> None:
    assert parse_file_name(name) is None
