"""Parses points in time: `-10m`, `2026-08-01T12:00`, `1785585600000`."""

import re
from datetime import datetime

from ottla.model.types import WallTime

AGO = re.compile(r"-(\d+)(ms|s|m|h|d|w)")
UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
EPOCH_MS = re.compile(r"\d{9,}")  # A shorter number is a year or a mistake.


def parse_moment(text: str, now: WallTime) -> WallTime:
    """Milliseconds since 1970; the ValueError says what is accepted."""
    if ago := AGO.fullmatch(text):
        return WallTime(max(0, now - int(ago[1]) * UNIT_MS[ago[2]]))
    if EPOCH_MS.fullmatch(text):
        return WallTime(int(text))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is not a time: give one like -10m, 2026-08-01T12:00:00Z"
            " or milliseconds since 1970"
        ) from None
    # Without a zone it is local time.
    return WallTime(int((moment if moment.tzinfo else moment.astimezone()).timestamp() * 1000))


def show_moment(timestamp_ms: int) -> str:
    """A record's timestamp in local time, to the millisecond; "-" if it has none."""
    if timestamp_ms < 0:
        return "-"
    try:
        local = datetime.fromtimestamp(timestamp_ms / 1000).astimezone()
    except (ValueError, OverflowError, OSError):
        return str(timestamp_ms)  # A producer may write any number.
    return local.isoformat(sep=" ", timespec="milliseconds")
