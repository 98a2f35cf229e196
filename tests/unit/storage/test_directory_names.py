import pytest

from ottla.model.types import TopicPartition
from ottla.storage.directory_names import DirectoryKind, marked_name, parse_directory_name

UNIQUE = bytes(range(16))


@pytest.mark.parametrize(
    ("name", "kind", "topic_partition"),
    [
        ("orders-0", DirectoryKind.PARTITION, TopicPartition("orders", 0)),
        ("a-b.c-12", DirectoryKind.PARTITION, TopicPartition("a-b.c", 12)),
        ("x-1.0af3-delete", DirectoryKind.DELETE, TopicPartition("x", 1)),
        ("x-1.0af3-future", DirectoryKind.FUTURE, TopicPartition("x", 1)),
        ("x.y-1.0af3-stray", DirectoryKind.STRAY, TopicPartition("x.y", 1)),
        ("lost+found", DirectoryKind.OTHER, None),
        ("orders", DirectoryKind.OTHER, None),
        ("orders-x", DirectoryKind.OTHER, None),
        ("remote-log-index-cache", DirectoryKind.OTHER, None),
    ],
)
def test_directories_are_told_by_their_names(
    name: str, kind: DirectoryKind, topic_partition: TopicPartition | None
) -> None:
    assert parse_directory_name(name) == (kind, topic_partition)


@pytest.mark.parametrize("kind", [DirectoryKind.DELETE, DirectoryKind.FUTURE, DirectoryKind.STRAY])
def test_a_marked_name_is_read_back(kind: DirectoryKind) -> None:
    name = marked_name(TopicPartition("a.b-c", 3), UNIQUE, kind)
    assert parse_directory_name(name) == (kind, TopicPartition("a.b-c", 3))


def test_a_long_topic_name_is_cut_to_what_a_file_name_may_have() -> None:
    name = marked_name(TopicPartition("t" * 249, 3), UNIQUE, DirectoryKind.DELETE)
    assert len(name) == 255
    assert parse_directory_name(name)[0] is DirectoryKind.DELETE
