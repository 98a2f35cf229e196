"""Standard error of a JVM that this process starts, and of the JVM's own processes, line by line.

They would write into the middle of a table that is being repainted on the terminal.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator

STDERR = 2


class JvmOutput:
    def __init__(self) -> None:
        self._terminal = os.dup(STDERR)
        self.write: Callable[[str], None] = self.write_plainly  # Takes a line without its end.

    def write_plainly(self, line: str) -> None:
        os.write(self._terminal, f"{line}\n".encode())

    @contextlib.contextmanager
    def captured(self) -> Iterator[None]:
        """Processes started in this block write to `write` until they end."""
        source, target = os.pipe()
        os.dup2(target, STDERR)
        os.close(target)
        threading.Thread(target=self._pass_on, args=(source,), daemon=True).start()
        try:
            yield
        finally:
            os.dup2(self._terminal, STDERR)

    def _pass_on(self, source: int) -> None:
        with open(source, errors="replace") as lines:
            for line in lines:
                self.write(line.rstrip("\n"))
