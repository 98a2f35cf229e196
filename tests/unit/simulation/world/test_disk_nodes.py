from random import Random

from ottla.simulation.world.disk_nodes import Directory, Inode


def test_a_truncation_that_was_not_synced_may_be_undone() -> None:
    outcomes = set()
    for seed in range(50):
        inode = Inode(0)
        inode.write(b"abcdef")
        inode.sync()
        inode.truncate(2)
        inode.lose_power(Random(seed))
        outcomes.add(bytes(inode.data))
    assert outcomes == {b"abcdef", b"ab"}


def test_a_truncation_can_lengthen() -> None:
    inode = Inode(0)
    inode.write(b"ab")
    inode.truncate(4)
    inode.sync()
    inode.lose_power(Random(1))
    assert inode.data == b"ab\x00\x00"


def test_a_bit_is_flipped_wherever_it_is_kept() -> None:
    inode = Inode(0)
    inode.write(b"\x00")
    inode.sync()
    inode.write(b"\x00")
    inode.flip_bit(0, 0)
    inode.flip_bit(1, 1)
    inode.sync()
    inode.lose_power(Random(1))
    assert inode.data == b"\x01\x02"


def test_a_rename_replaces_and_is_lost_with_its_creation() -> None:
    directory = Directory()
    old, new = Inode(0), Inode(0)
    directory.put("x", old)
    directory.sync()
    directory.put("x.tmp", new)
    directory.rename("x.tmp", "x")
    assert directory.entries == {"x": new}
    outcomes = set()
    for seed in range(60):
        again = Directory()
        again.put("x", old)
        again.sync()
        again.put("x.tmp", new)
        again.rename("x.tmp", "x")
        again.lose_power(Random(seed))
        outcomes.add(tuple(sorted((name, node is new) for name, node in again.entries.items())))
    assert outcomes == {(("x", False),), (("x", False), ("x.tmp", True)), (("x", True),)}


def test_a_directory_knows_what_it_weighs() -> None:
    outer, inner = Directory(), Directory()
    file = Inode(0)
    file.write(b"12345")
    inner.put("f", file)
    outer.put("d", inner)
    assert outer.size_bytes() == 5
