"""Reads Java's .properties text, which Kafka's server.properties is written in.

Comments start with # or !; a key ends at the first unescaped =, : or blank; a line that ends in
an odd number of backslashes goes on in the next; backslashes escape t, n, r, f, u0000 and any
other character. Of a key that comes twice, the last value counts, as in Java.
"""

from dataclasses import dataclass

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


@dataclass(frozen=True, slots=True)
class Property:
    key: str
    value: str
    line: int  # Where it begins, counted from 1.


def parse_properties(text: str) -> list[Property]:
    """All properties in the order of the text; raises ValueError for a broken \\u escape."""
    return [_property(line, number) for number, line in _logical_lines(text)]


def _logical_lines(text: str) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    begun: tuple[int, str] | None = None
    # Only these three end a line in Java; splitlines would also break at other characters.
    natural = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, raw in enumerate(natural, 1):
        line = raw.lstrip(_BLANKS)
        if begun is None:
            if not line or line[0] in "#!":
                continue
            begun = (number, "")
        first, so_far = begun
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            begun = (first, so_far + line[:-1])
        else:
            found.append((first, so_far + line))
            begun = None
    if begun is not None:
        found.append(begun)
    return found


def _property(line: str, number: int) -> Property:
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANKS:
        end += 2 if line[end] == "\\" else 1
    start = end
    while start < len(line) and line[start] in _BLANKS:
        start += 1
    if start < len(line) and line[start] in "=:":
        start += 1
        while start < len(line) and line[start] in _BLANKS:
            start += 1
    return Property(_unescaped(line[:end], number), _unescaped(line[start:], number), number)


def _unescaped(text: str, number: int) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character == "\\" and position < len(text):
            character = text[position]
            position += 1
            if character == "u":
                digits = text[position : position + 4]
                if len(digits) < 4 or any(d not in "0123456789abcdefABCDEF" for d in digits):
                    raise ValueError(f"line {number}: \\u needs four hexadecimal digits")
                character = chr(int(digits, 16))
                position += 4
            else:
                character = _ESCAPES.get(character, character)
        out.append(character)
    # Java's characters are UTF-16 units: a pair of escapes makes one character.
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
