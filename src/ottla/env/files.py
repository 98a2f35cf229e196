"""A piece of a file: what a fetch sends, and all that the network needs to know of storage."""

from ottla.env.disk import File


class FileRange:
    """Whole bytes of one file. Holding it keeps them readable, even after retention unlinks it."""

    __slots__ = ("file", "position", "size")

    def __init__(self, file: File, position: int, size: int) -> None:
        self.file = file
        self.position = position
        self.size = size

    def read(self) -> bytes:
        return self.file.read(self.position, self.size)

    def __repr__(self) -> str:
        return f"FileRange({self.file.path!r}, {self.position}, {self.size})"
