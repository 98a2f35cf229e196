"""Spark's reports of errors, of many lines each, as a sentence and a line of a file. Pure."""

import re
from typing import Final

OURS: Final = re.compile(r"\bottla(?:\.\w+)+: ([^\n]+)")
TRACEBACK: Final = "Traceback (most recent call last):\n"
FRAME: Final = re.compile(r'^ +File "([^"]+)", line (\d+)', re.MULTILINE)
# The Python classes of Spark's own errors, whose text begins with a condition in brackets.
CLASS: Final = re.compile(r"^(?:\w+\.)+\w+: (?=\[[A-Z])")
STATE: Final = re.compile(r"\s*SQLSTATE: \w+.*$")


def sentence_of(failure: object) -> str:
    """The error itself: of Ottla, of a task's Python code, or of Spark."""
    text = str(failure)
    if ours := OURS.findall(text):
        return str(ours[-1])
    innermost = text.rpartition(TRACEBACK)[2]  # All of it, if there is no traceback.
    lines = [line for line in innermost.splitlines() if line.strip()]
    if innermost != text:
        lines = [line for line in lines if not line[0].isspace()]
    first = lines[0] if lines else type(failure).__name__
    return STATE.sub("", CLASS.sub("", first)).strip()


def line_in(file: str, failure: object) -> int | None:
    """The line of the file in the traceback of a task; None if it is in other code."""
    lines = [int(line) for name, line in FRAME.findall(str(failure)) if name == file]
    return lines[-1] if lines else None
