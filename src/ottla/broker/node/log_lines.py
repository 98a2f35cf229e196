"""How the broker's log reads: one line per event, as text for people or JSON for machines.

Whatever a client sent may end up in a message, so control characters are spelled out: no client
can break a line, forge one or talk to the terminal.
"""

import logging
import sys
from datetime import UTC, datetime
from typing import Final, TextIO

JSON: Final = "json"
LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


def configure_logging(level: str, form: str, stream: TextIO | None = None) -> None:
    """Send everything under `ottla` to one stream; the one place where logging is set up."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if form == JSON else TextLines())
    root = logging.getLogger("ottla")
    root.handlers[:] = [handler]
    root.setLevel(LEVELS[level])
    root.propagate = False
    # A line that cannot be written (a closed pipe) must not disturb the broker.
    logging.raiseExceptions = False


class TextLines(logging.Formatter):
    """`2026-01-31T12:00:00.000Z INFO broker.node.broker: message`."""

    def format(self, record: logging.LogRecord) -> str:
        message = spelled_out(_whole_message(self, record))
        where = record.name.removeprefix("ottla.")
        return f"{_moment(record)} {record.levelname} {where}: {message}"


class JsonLines(logging.Formatter):
    """One JSON object a line, with time, level, logger and message."""

    def format(self, record: logging.LogRecord) -> str:
        import json  # Only where it is asked for: it costs start-up time.

        event = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            event["exception"] = self.formatException(record.exc_info)
        return json.dumps(event)


def json_line(message: str, level: int = logging.INFO) -> str:
    """A line of a command that must be seen at every log level, in the form of `JsonLines`."""
    record = logging.LogRecord("ottla.cli", level, "", 0, message, None, None)
    return JsonLines().format(record)


def spelled_out(text: str) -> str:
    """The text on one line, with whatever a terminal would act upon spelled out."""
    if text.isprintable():
        return text
    return "".join(
        character
        if character.isprintable()
        else character.encode("unicode_escape", "backslashreplace").decode()
        for character in text
    )


def _whole_message(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    if not record.exc_info:
        return record.getMessage()
    return f"{record.getMessage()}\n{formatter.formatException(record.exc_info)}"


def _moment(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{int(record.msecs):03d}Z"
