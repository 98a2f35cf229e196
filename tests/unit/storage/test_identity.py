import errno

import pytest

from ottla.storage.identity import (
    DirectoryRefused,
    MetaProperties,
    is_unused,
    read_meta,
    refuse_foreign,
    take,
)
from tests.unit.storage.making import make_disk

META = MetaProperties("cluster-a", 1, bytes(16))


def test_a_directory_that_was_never_formatted_has_no_identity() -> None:
    assert read_meta(make_disk(), "/data") is None


def test_an_empty_directory_is_unused_and_so_is_none_at_all() -> None:
    disk = make_disk()
    disk.make_directory("/empty")
    assert is_unused(disk, "/empty")
    assert is_unused(disk, "/nowhere")
    for name in (".lock", "meta.properties.tmp", "lost+found"):
        disk.open(f"/empty/{name}", create=True)
    assert is_unused(disk, "/empty")
    disk.open("/empty/holiday.jpg", create=True)
    assert not is_unused(disk, "/empty")


def test_a_directory_of_something_else_is_refused() -> None:
    disk = make_disk()
    with pytest.raises(DirectoryRefused, match="/data holds other files"):
        refuse_foreign(disk, "/data", None, None, None)


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "says"),
    [("cluster-b", 1, "belongs to the cluster cluster-a"), ("cluster-a", 2, "belongs to node 1")],
)
def test_a_directory_of_another_broker_is_refused(cluster_id: str, node_id: int, says: str) -> None:
    with pytest.raises(DirectoryRefused, match=says):
        refuse_foreign(make_disk(), "/data", META, cluster_id, node_id)


def test_our_own_directory_is_not_refused() -> None:
    refuse_foreign(make_disk(), "/data", META, "cluster-a", 1)
    refuse_foreign(make_disk(), "/data", META, None, None)


@pytest.mark.parametrize(
    ("code", "says"),
    [(errno.EACCES, "may not be written"), (errno.EEXIST, "is not a directory")],
)
def test_a_directory_that_cannot_be_had_is_refused_with_advice(code: int, says: str) -> None:
    disk = make_disk()
    disk.fail("create", code, path_contains=".lock")
    with pytest.raises(DirectoryRefused, match=says):
        take(disk, "/data")


def test_a_broken_disk_is_no_matter_of_advice() -> None:
    disk = make_disk()
    disk.fail("create", errno.EIO, path_contains=".lock")
    with pytest.raises(OSError, match="simulated"):
        take(disk, "/data")


def test_a_directory_that_was_made_survives_power() -> None:
    disk = make_disk()
    take(disk, "/deep/er/still").release()
    disk.cut_power()
    assert disk.is_directory("/deep/er/still")
