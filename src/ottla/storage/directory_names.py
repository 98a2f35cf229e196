"""What the directories inside a log directory are called, as Apache Kafka names them."""

import re
from enum import Enum
from typing import Final

from ottla.model.types import TopicPartition

NAME_CHARACTERS_MAX: Final = 255

_PATTERN: Final = re.compile(r"(?P<topic>\S+)-(?P<partition>[0-9]+)")
_MARKED: Final = re.compile(
    r"(?P<topic>\S+)-(?P<partition>[0-9]+)\.(?P<unique>[^.\s]+)-(?P<mark>delete|future|stray)"
)


class DirectoryKind(Enum):
    PARTITION = "partition"
    DELETE = "delete"  # A deleted topic, to be removed.
    FUTURE = "future"  # A replica on its way to this directory from another one.
    STRAY = "stray"  # A replica that the cluster does not know any more; kept for a person to see.
    OTHER = "other"


def parse_directory_name(name: str) -> tuple[DirectoryKind, TopicPartition | None]:
    marked = _MARKED.fullmatch(name)
    if marked is not None:
        topic_partition = TopicPartition(marked["topic"], int(marked["partition"]))
        return DirectoryKind(marked["mark"]), topic_partition
    plain = _PATTERN.fullmatch(name)
    if plain is not None:
        return DirectoryKind.PARTITION, TopicPartition(plain["topic"], int(plain["partition"]))
    return DirectoryKind.OTHER, None


def marked_name(topic_partition: TopicPartition, unique: bytes, kind: DirectoryKind) -> str:
    """`topic-0.<unique>-delete`: a long topic name is cut, since a file name has its bound."""
    suffix = f"-{topic_partition.partition}.{unique.hex()}-{kind.value}"
    return topic_partition.topic[: NAME_CHARACTERS_MAX - len(suffix)] + suffix
