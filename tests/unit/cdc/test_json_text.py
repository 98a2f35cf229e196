"""Values as JSON with all digits of PostgreSQL's text."""

import json
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cdc.json_text import Types, array_of, number, quoted

INT4, NUMERIC, FLOAT8, TEXT = 23, 1700, 701, 25
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
Nested = str | list["Nested"] | None


@pytest.mark.parametrize(
    ("type_id", "text", "expected"),
    [
        (INT4, "-5", "-5"),
        (NUMERIC, "12345678901234567890.120", "12345678901234567890.120"),
        (NUMERIC, "NaN", '"NaN"'),
        (FLOAT8, "-Infinity", '"-Infinity"'),
        (FLOAT8, "1e+300", "1e+300"),
        (16, "t", "true"),
        (16, "f", "false"),
        (114, '{"a" : 1}', '{"a" : 1}'),
        (1114, "2026-01-02 03:04:05.5", '"2026-01-02T03:04:05.5"'),
        (1114, "2026-01-02 03:04:15", '"2026-01-02T03:04:15"'),
        (1184, "2026-01-02 03:04:05+00", '"2026-01-02T03:04:05+00:00"'),
        (1184, "2026-01-02 03:04:05.25+00", '"2026-01-02T03:04:05.25+00:00"'),
        (1184, "infinity", '"infinity"'),
        (1114, "0044-03-15 00:00:00 BC", '"0044-03-15 00:00:00 BC"'),
        (TEXT, 'a "b"\n\\ü', '"a \\"b\\"\\n\\\\ü"'),
        (999_999, "unheard of", '"unheard of"'),
    ],
)
def test_values_are_written_by_their_type(type_id: int, text: str, expected: str) -> None:
    assert Types().converter(type_id)(text) == expected


@given(st.decimals(allow_nan=False, allow_infinity=False, places=9))
def test_numbers_keep_all_digits(value: Decimal) -> None:
    assert json.loads(number(f"{value:f}"), parse_float=Decimal, parse_int=Decimal) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_numbers(value: float) -> None:
    assert math.isclose(float(json.loads(number(repr(value)))), value, rel_tol=0)


@given(TEXTS)
def test_any_text_is_a_string(text: str) -> None:
    assert json.loads(quoted(text)) == text


def postgres_array(value: Nested) -> str:
    """As PostgreSQL's array_out writes it; every element may be quoted."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return "{" + ",".join(postgres_array(item) for item in value) + "}"


ARRAYS = st.lists(st.none() | TEXTS, max_size=3)


@given(ARRAYS | st.lists(ARRAYS, min_size=1, max_size=3))
def test_arrays_are_arrays(value: Nested) -> None:
    assert json.loads(array_of(quoted)(postgres_array(value))) == value
    assert json.loads(array_of(quoted)("[0:9]=" + postgres_array(value))) == value


def test_types_of_the_databases_own_are_learnt() -> None:
    types = Types()
    # A domain of a domain of numeric, an array of it, an array of some enumeration.
    types.learn({90001: 90000, 90000: NUMERIC}, {90002: 90001, 90003: 90010})
    assert types.converter(90001)("1.50") == "1.50"
    assert types.converter(90002)("{1.50,NULL}") == "[1.50,null]"
    assert types.converter(90003)('{sad,"so so"}') == '["sad","so so"]'
