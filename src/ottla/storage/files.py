"""The names of a partition directory's files, as Apache Kafka gives them."""

import re
from typing import Final

from ottla.model.types import Offset

LOG: Final = ".log"
INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TRANSACTION_INDEX: Final = ".txnindex"
PRODUCER_SNAPSHOT: Final = ".snapshot"

DELETED: Final = ".deleted"  # Renamed away; removed after `file.delete.delay.ms`.
CLEANED: Final = ".cleaned"  # A compaction that did not finish.
SWAP: Final = ".swap"  # A compaction that finished, but was not put in place.

LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"

INDEXES: Final = (INDEX, TIME_INDEX, TRANSACTION_INDEX)

_NAME: Final = re.compile(
    r"([0-9]{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)(\.deleted|\.cleaned|\.swap)?"
)


def file_name(offset: Offset, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def parse_file_name(name: str) -> tuple[Offset, str, str] | None:
    """Offset, kind and the mark after it (or ""); None for every other file."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    return int(match[1]), match[2], match[3] or ""
