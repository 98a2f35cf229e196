"""Parsing of a table row, and of values."""

import pytest

from ottla.metadata.configs.definition import (
    ConfigType,
    ConfigValueError,
    Definition,
    Service,
    Update,
    Value,
    as_text,
    parse_table,
)

TABLE = """
a.b int 5 >=1 high served cluster-wide internal
    What it is for.
c.with.a.very.long.name
    string null {x,y} low
    not-built read-only
    Another one.
"""


def config(kind: str, check: str = "any") -> Definition:
    return parse_table(f"k {kind} null {check} low served read-only\n    Text.")[0]


def test_a_row_may_be_broken_anywhere() -> None:
    first, second = parse_table(TABLE)
    assert first == Definition(
        "a.b",
        ConfigType.INT,
        "5",
        ">=1",
        "high",
        Service.SERVED,
        Update.CLUSTER_WIDE,
        "What it is for.",
        is_internal=True,
    )
    assert (second.name, second.default, second.service) == (
        "c.with.a.very.long.name",
        None,
        Service.NOT_BUILT,
    )
    assert second.documentation == "Another one."


@pytest.mark.parametrize(
    ("kind", "check", "text", "value"),
    [
        ("int", "any", " +5 ", 5),
        ("long", "any", "-9223372036854775808", -(2**63)),
        ("double", "0..1", "0.25", 0.25),
        ("boolean", "any", "TRUE", True),
        ("list", "any", "a, b ,a", ["a", "b"]),
        ("list", "any", "", []),
        ("string", "any", " x ", "x"),
        ("int", "-1|1..9", "-1", -1),
        ("string", "i{ES256,RS256}", "es256", "es256"),
        ("list", "throttled", "*", ["*"]),
        ("list", "throttled", "0:1,2:3", ["0:1", "2:3"]),
    ],
)
def test_a_value_is_parsed(kind: str, check: str, text: str, value: Value) -> None:
    assert config(kind, check).parse(text) == value


@pytest.mark.parametrize(
    ("kind", "check", "text"),
    [
        ("int", "any", "2147483648"),
        ("short", "any", "32768"),
        ("int", "any", "1_000"),
        ("int", "any", "\u0661"),
        ("int", "any", ""),
        ("int", ">=1", "0"),
        ("int", "-1|1..9", "0"),
        ("double", "0..1", "1.01"),
        ("double", "any", "nan"),
        ("double", "any", "x"),
        ("boolean", "any", "1"),
        ("list", "{a,b}", "a,"),
        ("list", "throttled", "0-1"),
        ("string", "{a,b}", "A"),
        ("string", "non-empty", " "),
    ],
)
def test_a_wrong_value_is_refused(kind: str, check: str, text: str) -> None:
    with pytest.raises(ConfigValueError, match=r"must|may"):
        config(kind, check).parse(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (False, "false"),
        (7, "7"),
        (["a", "b"], "a,b"),
        (0.5, "0.5"),
        (1.0, "1.0"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (12345678.9, "1.23456789E7"),
        (-0.0001, "-1.0E-4"),
        (1e7, "1.0E7"),
    ],
)
def test_a_value_is_printed_as_java_prints_it(value: Value, text: str | None) -> None:
    assert as_text(value) == text
