"""Parsing of points in time."""

import pytest

from ottla.cli.tasks.timestamps import parse_moment, show_moment
from ottla.model.types import WallTime

NOW = WallTime(1_800_000_000_000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-10m", NOW - 600_000),
        ("-250ms", NOW - 250),
        ("-3s", NOW - 3_000),
        ("-2h", NOW - 7_200_000),
        ("-1d", NOW - 86_400_000),
        ("-1w", NOW - 7 * 86_400_000),
        ("-99999w", 0),
        ("1785585600123", 1_785_585_600_123),
        ("2026-08-01T12:00:00Z", 1_785_585_600_000),
        ("2026-08-01T14:00+02:00", 1_785_585_600_000),
    ],
)
def test_times_are_parsed(text: str, expected: int) -> None:
    assert parse_moment(text, NOW) == expected


def test_a_time_without_a_zone_is_local() -> None:
    local = show_moment(1_785_585_600_000)[:19]
    assert parse_moment(local, NOW) == 1_785_585_600_000


@pytest.mark.parametrize("text", ["", "10m", "-10", "-10y", "2026", "yesterday", "12:00"])
def test_an_invalid_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time: give one like -10m"):
        parse_moment(text, NOW)


def test_a_timestamp_is_shown_to_the_millisecond() -> None:
    shown = show_moment(1_785_585_600_123)
    assert parse_moment(shown, NOW) == 1_785_585_600_123
    assert ".123" in shown


def test_missing_and_out_of_range_timestamps_are_shown() -> None:
    assert show_moment(-1) == "-"
    assert show_moment(2**62) == str(2**62)
