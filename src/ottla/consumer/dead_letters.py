"""Dead letters: failed records with Kafka Connect's error headers.

Pure: encoding and decoding of the headers. Key, value, timestamp and the record's own headers are
unchanged, so that a dead letter can be replayed.
"""

import traceback
from typing import NamedTuple

from ottla.client.message import Message
from ottla.records.record import Headers

PREFIX = "__connect.errors."
TOPIC = PREFIX + "topic"
PARTITION = PREFIX + "partition"
OFFSET = PREFIX + "offset"
CONNECTOR = PREFIX + "connector.name"
TASK = PREFIX + "task.id"
STAGE = PREFIX + "stage"
EXECUTING_CLASS = PREFIX + "class.name"
EXCEPTION_CLASS = PREFIX + "exception.class.name"
EXCEPTION_MESSAGE = PREFIX + "exception.message"
STACKTRACE = PREFIX + "exception.stacktrace"

HANDLING = "TASK_PUT"  # Connect's name for the stage in which a sink processes a record.
TEXT_CHARACTERS_MAX = 4_000
STACKTRACE_CHARACTERS_MAX = 16_000


class DeadLetter(NamedTuple):
    """A record of a dead letter topic, with its original fields."""

    topic: str | None  # None if unknown: then it can only be replayed to a named topic.
    partition: int | None
    offset: int | None
    group: str | None  # Or the connector.
    error_class: str | None
    error_message: str | None
    stacktrace: str | None
    headers: Headers  # The record's own.


def headers_for(
    message: Message, error: BaseException, *, group: str, handler: str, has_stacktrace: bool = True
) -> list[tuple[str, bytes | None]]:
    """The record's own headers and Connect's; headers of an earlier failure are replaced."""
    kind = type(error)
    fields = {
        TOPIC: message.topic,
        PARTITION: str(message.partition),
        OFFSET: str(message.offset),
        CONNECTOR: group,
        TASK: "0",
        STAGE: HANDLING,
        EXECUTING_CLASS: handler,
        EXCEPTION_CLASS: f"{kind.__module__}.{kind.__qualname__}",
        EXCEPTION_MESSAGE: str(error)[:TEXT_CHARACTERS_MAX],
    }
    if has_stacktrace:
        # The end names the line that failed.
        fields[STACKTRACE] = "".join(traceback.format_exception(error))[-STACKTRACE_CHARACTERS_MAX:]
    added = [(name, text.encode("utf-8", "backslashreplace")) for name, text in fields.items()]
    return [*own_headers(message.headers), *added]


def own_headers(headers: Headers) -> Headers:
    return tuple((name, value) for name, value in headers if not name.startswith(PREFIX))


def read_dead_letter(message: Message) -> DeadLetter:
    """Decode the headers; all fields are optional, since the topic may hold other records."""
    fields: dict[str, str] = {
        name: value.decode("utf-8", "replace")
        for name, value in message.headers
        if name.startswith(PREFIX) and value is not None
    }
    return DeadLetter(
        fields.get(TOPIC),
        _number(fields.get(PARTITION)),
        _number(fields.get(OFFSET)),
        fields.get(CONNECTOR),
        fields.get(EXCEPTION_CLASS),
        fields.get(EXCEPTION_MESSAGE),
        fields.get(STACKTRACE),
        own_headers(message.headers),
    )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
