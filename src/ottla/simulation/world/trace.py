"""What happened, in order, as one hash: two runs of a seed that differ anywhere differ here."""

import hashlib
from collections import deque
from collections.abc import Callable

LINES_MAX = 400  # The last ones are kept, for a person who looks into a failure.


class Trace:
    def __init__(self, now_ns: Callable[[], int]) -> None:
        self.events = 0
        self.lines: deque[str] = deque(maxlen=LINES_MAX)
        self.listener: Callable[[str], None] | None = None
        self._now_ns = now_ns
        self._hash = hashlib.sha256()

    def note(self, what: str, data: bytes | bytearray | memoryview = b"") -> None:
        """Something happened now; `data` is part of it, but is not shown."""
        line = f"{self._now_ns() / 1e6:.3f} ms  {what}"
        self.events += 1
        self._hash.update(line.encode())
        self._hash.update(data)
        self.lines.append(line)
        if self.listener is not None:
            self.listener(line)

    def digest(self) -> str:
        return self._hash.hexdigest()[:16]
