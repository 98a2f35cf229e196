"""What a tail is told to do."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TailSettings:
    dsn: str
    tables: tuple[str, ...] = ()  # None named: all of the publication, or all that have a key.
    prefix: str | None = None  # Default: the name of the database.
    slot: str = "ottla"
    publication: str = "ottla"
    partitions: int | None = None  # Of a topic that is made; None: as the broker likes.
    replication_factor: int | None = None
    codec: int = 0
    is_resync: bool = False
    stops_at_end: bool = False
