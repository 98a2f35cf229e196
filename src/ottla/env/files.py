"""A range of a file: what a fetch sends, and the network layer's only view of storage."""

from typing import Protocol

from ottla.env.disk import File
from ottla.model.errors import Damaged


class RangeOwner(Protocol):
    """Owner of a range's bytes; the sender does not know the log."""

    def unreadable(self, error: OSError | Damaged) -> None:
        """The bytes could not be read when they were to be sent, though the file was not
        truncated.
        """


class FileRange:
    """A byte range of one file. It stays readable while referenced, even after an unlink.

    If the file is truncated after the range was created, its bytes may differ or be missing: then
    `truncations` of file and range differ, and the range must not be sent.
    """

    __slots__ = ("file", "owner", "position", "size", "truncations")

    def __init__(self, file: File, position: int, size: int) -> None:
        self.file = file
        self.position = position
        self.size = size
        self.truncations = file.truncations
        self.owner: RangeOwner | None = None

    def behind(self, count: int) -> "FileRange":
        """The same range without its first `count` bytes."""
        rest = FileRange(self.file, self.position + count, self.size - count)
        rest.truncations = self.truncations
        rest.owner = self.owner
        return rest

    def read(self) -> bytes:
        return self.file.read(self.position, self.size)

    def __repr__(self) -> str:
        return f"FileRange({self.file.path!r}, {self.position}, {self.size})"
