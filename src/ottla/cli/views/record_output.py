"""Output of records by `ottla consume`: text, JSON or raw values.

Text is unchanged in pipes and files; on a terminal, control characters are escaped.
"""

import codecs
import json
import sys
from dataclasses import dataclass

from ottla.cli.tasks.timestamps import show_moment
from ottla.cli.views.terminal import as_json, escaped
from ottla.client.message import Message

ABSENT = b"null"


@dataclass(frozen=True, slots=True)
class RecordOutput:
    format_name: str
    has_keys: bool
    has_headers: bool
    has_timestamps: bool
    has_places: bool
    separator: bytes
    delimiter: bytes
    is_for_terminal: bool

    @classmethod
    def choose(
        cls,
        *,
        format_name: str,
        keys: bool,
        headers: bool,
        timestamps: bool,
        places: bool,
        separator: str,
        delimiter: str,
    ) -> "RecordOutput":
        return cls(
            format_name,
            keys,
            headers,
            timestamps,
            places,
            codecs.decode(separator, "unicode_escape").encode(),
            codecs.decode(delimiter, "unicode_escape").encode(),
            sys.stdout.isatty(),
        )

    def render(self, message: Message) -> bytes:
        if self.format_name == "json":
            return _json_line(message)
        if self.format_name == "raw":
            return (message.value or b"") + self.delimiter
        return self._text(message) + self.delimiter

    def _text(self, message: Message) -> bytes:
        parts: list[bytes] = []
        if self.has_timestamps:
            parts.append(show_moment(message.timestamp_ms).encode())
        if self.has_places:
            parts.append(f"{message.partition}:{message.offset}".encode())
        if self.has_headers:
            parts.append(
                b",".join(
                    self._safe(name.encode()) + b"=" + self._safe(value)
                    for name, value in message.headers
                )
            )
        if self.has_keys:
            parts.append(self._safe(message.key))
        parts.append(self._safe(message.value))
        return self.separator.join(parts)

    def _safe(self, data: bytes | None) -> bytes:
        if data is None:
            return ABSENT
        return escaped(data) if self.is_for_terminal else data


def _json_line(message: Message) -> bytes:
    shown: dict[str, object] = {
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
        "timestamp": message.timestamp_ms,
        "timestamp_type": "LogAppendTime" if message.is_log_append_time else "CreateTime",
        **as_json("key", message.key),
        **as_json("value", message.value),
        "headers": [{"name": name, **as_json("value", value)} for name, value in message.headers],
    }
    return json.dumps(shown, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
