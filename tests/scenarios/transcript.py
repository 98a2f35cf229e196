"""A transcript: blocks of commands, a line of dashes, and what came of them.

    # A sentence that says why.
    join A
    pass 3s
    ----
    A <- joined generation 1

Lines that begin with # are for the reader. Blocks are set apart by empty lines.
"""

from collections.abc import Callable
from dataclasses import dataclass

SEPARATOR = "----"


@dataclass
class Block:
    """Comments and commands, as they are written, and what is expected."""

    lines: list[str]
    expected: list[str] | None  # None: only comments.

    @property
    def commands(self) -> list[str]:
        return [line for line in self.lines if line and not line.startswith("#")]


def parse(text: str) -> list[Block]:
    blocks = []
    for part in text.strip().split("\n\n"):
        lines = part.split("\n")
        if SEPARATOR in lines:
            at = lines.index(SEPARATOR)
            blocks.append(Block(lines[:at], lines[at + 1 :]))
        else:
            blocks.append(Block(lines, None))
    return blocks


def run(text: str, command: Callable[[str], list[str]]) -> str:
    """The transcript as it should be, if `command` says what comes of each line."""
    parts = []
    for block in parse(text):
        lines = list(block.lines)
        if block.commands:
            came = [line for one in block.commands for line in command(one)]
            lines += [SEPARATOR, *(came or ["(nothing)"])]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"
