"""A piece of a file: what a fetch sends, and all that the network needs to know of storage."""

from typing import Protocol

from ottla.env.disk import File
from ottla.model.errors import Damaged


class RangeOwner(Protocol):
    """Whose bytes a range has: those who send it do not know the log behind it."""

    def unreadable(self, error: OSError | Damaged) -> None:
        """They could not be read when their turn came, though nobody truncated the file."""


class FileRange:
    """Whole bytes of one file. Holding it keeps them readable, even after retention unlinks it.

    A file that is truncated after the range was made may have other bytes there, or none: its
    `truncations` differ from the range's, and the range must not be sent.
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
