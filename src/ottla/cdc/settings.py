"""Settings of a tail."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TailSettings:
    dsn: str
    tables: tuple[str, ...] = ()  # Empty: all of the publication, or all tables with a key.
    prefix: str | None = None  # Default: the name of the database.
    slot: str = "ottla"
    publication: str = "ottla"
    partitions: int | None = None  # Of a created topic; None: the broker's default.
    replication_factor: int | None = None
    codec: int = 0
    is_resync: bool = False
    stops_at_end: bool = False
