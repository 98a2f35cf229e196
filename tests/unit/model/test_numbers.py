"""Integers parsed as Java does."""

import pytest

from ottla.model.numbers import parse_integer


@pytest.mark.parametrize(
    ("text", "bits", "value"),
    [
        ("0", 16, 0),
        ("-32768", 16, -32768),
        ("+007", 32, 7),
        ("0" * 10_000 + "5", 32, 5),
        ("-" + "0" * 10_000, 32, 0),
        ("9223372036854775807", 64, 2**63 - 1),
    ],
)
def test_a_number_is_read(text: str, bits: int, value: int) -> None:
    assert parse_integer(text, bits) == value


@pytest.mark.parametrize("text", ["", "-", "+-1", " 1", "1_0", "\u0663", "\u00b2", "1.0", "0x1"])
def test_text_that_is_not_an_integer_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be a whole number$"):
        parse_integer(text, 32)


@pytest.mark.parametrize("text", ["2147483648", "-2147483649", "9" * 5000, "-" + "9" * 30_000])
def test_an_integer_that_does_not_fit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a whole number of 32 bits"):
        parse_integer(text, 32)
