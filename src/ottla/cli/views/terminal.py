"""Output of the tools: tables for people, JSON for scripts, escaped bytes for terminals.

Notes and progress go to standard error, so that standard output holds only the result.
"""

import json
import sys
import unicodedata
from base64 import b64encode
from collections.abc import Iterable, Sequence

WIDTH_OF_A_PIPE = 10_000  # Do not wrap lines in pipes.
SPELLED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; a column whose name ends with ">" is right-aligned."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in columns:
        is_right = column.endswith(">")
        table.add_column(
            column.rstrip(">"), justify="right" if is_right else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(printable(str(cell))) for cell in row))
    width = None if sys.stdout.isatty() else WIDTH_OF_A_PIPE
    Console(width=width, highlight=False).print(table)


def show_json(value: object) -> None:
    """One line of JSON."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def say(text: str) -> None:
    """Print a result sentence."""
    sys.stdout.write(printable(text) + "\n")


def note(text: str) -> None:
    """Print a note to standard error."""
    sys.stdout.flush()
    sys.stderr.write(printable(text) + "\n")


def printable(text: str) -> str:
    """The text with control characters escaped."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else _spell(character) for character in text
    )


def escaped(data: bytes) -> bytes:
    """Arbitrary bytes on one line without control characters, and without loss."""
    text = data.decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text.encode()
    return printable(text).encode()


def as_text(data: bytes) -> str | None:
    """The bytes as UTF-8 text, or None if they are not valid."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def as_json(name: str, data: bytes | None) -> dict[str, str | None]:
    """`{name: text}`, or `{name_base64: ...}` for bytes that are not text."""
    if data is None:
        return {name: None}
    text = as_text(data)
    if text is None:
        return {f"{name}_base64": b64encode(data).decode()}
    return {name: text}


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def bytes_text(count: int) -> str:
    if count < 1024:
        return f"{count} B"
    value = float(count)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        value /= 1024
        if value < 1024 or unit == "TiB":
            break
    return f"{value:.1f} {unit}"


def _spell(character: str) -> str:
    if spelled := SPELLED.get(character):
        return spelled
    if unicodedata.category(character) == "Zs":
        return character  # A wide space is harmless.
    return character.encode("unicode_escape").decode()
