"""Converts PostgreSQL's text of a value to JSON, by type.

As PostgreSQL's `to_json` does: numbers with all of their digits, `json` unchanged, times as ISO
8601, arrays as arrays, everything else as a string. No value passes through a float.
"""

import re
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring
from typing import Final

Convert = Callable[[str], str]

BOOL, JSON, JSONB, TIMESTAMP, TIMESTAMPTZ = 16, 114, 3802, 1114, 1184
INTEGERS: Final = (20, 21, 23, 26)
FRACTIONS: Final = (700, 701, 1700)  # The floats, and numeric.

quoted: Final[Convert] = encode_basestring

# Tokens of an array: brace or comma, quoted element, bare element.
_TOKEN = re.compile(r'([{},])|"((?:[^"\\]|\\.)*)"|([^{},"]+)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def number(text: str) -> str:
    return text if text[-1].isdigit() else quoted(text)  # NaN and Infinity are not JSON numbers.


def boolean(text: str) -> str:
    return "true" if text == "t" else "false"


def as_it_is(text: str) -> str:
    return text


def time(text: str) -> str:
    """A timestamp as ISO 8601; `infinity` and years BC keep PostgreSQL's form."""
    if text[-1].isdigit():
        text = text.replace(" ", "T", 1)
        if text[-3] in "+-" and "T" in text:
            text += ":00"  # Complete an offset without minutes.
    return quoted(text)


def array_of(convert: Convert) -> Convert:
    def array(text: str) -> str:
        # Skip bounds such as [0:1]={a,b}.
        start = text.index("{")
        parts: list[str] = []
        for brace, string, bare in _TOKEN.findall(text, start):
            if brace:
                parts.append({"{": "[", "}": "]", ",": ","}[brace])
            elif bare:
                parts.append("null" if bare == "NULL" else convert(bare))
            else:
                parts.append(convert(_ESCAPED.sub(r"\1", string)))
        return "".join(parts)

    return array


class Types:
    """Conversion function of each type; user-defined types come from the catalogue."""

    def __init__(self) -> None:
        self._converters: dict[int, Convert] = {
            BOOL: boolean,
            JSON: as_it_is,
            JSONB: as_it_is,
            TIMESTAMP: time,
            TIMESTAMPTZ: time,
            **dict.fromkeys(INTEGERS, as_it_is),
            **dict.fromkeys(FRACTIONS, number),
        }

    def learn(self, bases: Mapping[int, int], elements: Mapping[int, int]) -> None:
        """Add domains with their base types, and arrays with their element types."""
        for type_id, element in elements.items():
            self._converters[type_id] = array_of(self._of(element, bases))
        for type_id in bases:
            self._converters[type_id] = self._of(type_id, bases)

    def converter(self, type_id: int) -> Convert:
        return self._converters.get(type_id, quoted)

    def _of(self, type_id: int, bases: Mapping[int, int]) -> Convert:
        while type_id in bases:
            type_id = bases[type_id]
        return self.converter(type_id)
