"""Implementation of `ottla produce`: lines to records, with a summary at the end.

Lines are sent as they come, so that `tail -f` can be piped in; the producer's buffer bounds the
read-ahead.
"""

import asyncio
import codecs
import json
import os
import stat
import sys
from base64 import b64decode
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import NamedTuple

from ottla.cli.tasks.client_options import Misuse, parse_pairs
from ottla.cli.views.terminal import bytes_text, note, plural, say, show_json
from ottla.client.cluster import Cluster
from ottla.client.delivery import ProducerSettings, Written
from ottla.client.producer import Producer
from ottla.records.record import Headers

STDIN = 0
CHUNK_BYTES = 256 * 1024
PROGRESS_MS = 500


class Line(NamedTuple):
    """A record to send."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Source:
    values: list[str]
    files: list[str]
    key: str | None
    key_separator: str | None
    headers: list[str]
    is_json: bool
    is_whole: bool
    is_tombstone: bool

    def check(self) -> None:
        """Refuse contradictory options."""
        if self.values and self.files:
            raise Misuse("give values or --file, not both")
        if self.key is not None and self.key_separator is not None:
            raise Misuse("give --key or --key-separator, not both")
        if self.key_separator == "":
            raise Misuse("--key-separator must not be empty")
        if self.is_tombstone and (self.key is None or self.values or self.files):
            raise Misuse("--tombstone needs --key, and takes no values")
        parse_pairs(self.headers, "--header")
        for name in self.files:
            with open(name, "rb"):
                pass  # Report an unreadable file before anything is written.

    async def lines(self) -> AsyncIterator[Line]:
        headers = tuple(
            (name, value.encode()) for name, value in parse_pairs(self.headers, "--header").items()
        )
        key = None if self.key is None else self.key.encode()
        if self.is_tombstone:
            yield Line(None, key, headers)
            return
        separator = None
        if self.key_separator is not None:
            # As typed in a shell: \t is a tab.
            separator = codecs.decode(self.key_separator, "unicode_escape").encode()
        number = 0
        async for text in self._texts():
            number += 1
            if self.is_json:
                yield _from_json(text, number)
            elif separator is not None:
                yield _split(text, separator, number)._replace(headers=headers)
            else:
                yield Line(text, key, headers)

    async def _texts(self) -> AsyncIterator[bytes]:
        if self.values:
            for value in self.values:
                yield os.fsencode(value)  # The bytes as passed by the shell.
            return
        if not self.files:
            if sys.stdin.isatty():
                note("Type records, one per line; Ctrl-D ends.")
            async for text in self._texts_of(STDIN):
                yield text
        for name in self.files:
            descriptor = os.open(name, os.O_RDONLY)
            try:
                async for text in self._texts_of(descriptor):
                    yield text
            finally:
                os.close(descriptor)

    async def _texts_of(self, descriptor: int) -> AsyncIterator[bytes]:
        rest = b""
        async for chunk in read_chunks(descriptor):
            if self.is_whole:
                rest += chunk
                continue
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line.removesuffix(b"\r")
        if rest or self.is_whole:
            yield rest


async def read_chunks(descriptor: int) -> AsyncIterator[bytes]:
    """Read available bytes as soon as there are some, without blocking the loop."""
    is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
    while True:
        if is_file:
            await asyncio.sleep(0)
        else:
            is_file = not await _wait_readable(descriptor)
        chunk = os.read(descriptor, CHUNK_BYTES)
        if not chunk:
            return
        yield chunk


async def write_all(
    cluster: Cluster,
    topic: str,
    source: Source,
    partition: int | None,
    settings: ProducerSettings,
    *,
    as_json: bool,
) -> None:
    tally = Tally(topic, is_shown=sys.stderr.isatty() and not source.values)
    try:
        async with Producer(cluster, settings) as producer:
            try:
                async for line in source.lines():
                    future = await producer.send(
                        topic,
                        line.value,
                        line.key,
                        headers=line.headers,
                        partition=partition,
                        timestamp_ms=line.timestamp_ms,
                    )
                    future.add_done_callback(tally.written)
                    tally.sent(line, cluster.clock.monotonic())
            except Misuse:
                await producer.flush()  # The lines before the invalid one.
                raise
    except Exception:
        if tally.has_sent:
            tally.end(as_json=as_json)
        raise
    except asyncio.CancelledError:
        tally.end(as_json=as_json)
        raise
    tally.end(as_json=as_json)


class Tally:
    """Counts written records, and shows progress."""

    def __init__(self, topic: str, *, is_shown: bool) -> None:
        self._topic = topic
        self._is_shown = is_shown
        self._sent = self._written = self._bytes = 0
        self._shown_at = 0
        self._ranges: dict[int, tuple[int, int]] = {}

    @property
    def has_sent(self) -> bool:
        return self._sent > 0

    def sent(self, line: Line, now: int) -> None:
        self._sent += 1
        self._bytes += len(line.value or b"") + len(line.key or b"")
        if not self._shown_at:
            self._shown_at = now
        if self._is_shown and now - self._shown_at >= PROGRESS_MS:
            self._shown_at = now
            sys.stderr.write(
                f"\r{plural(self._written, 'record')} written, {bytes_text(self._bytes)} read\x1b[K"
            )
            sys.stderr.flush()

    def written(self, future: "asyncio.Future[Written]") -> None:
        if future.cancelled() or future.exception() is not None:
            return
        self._written += 1
        _, partition, offset, _ = future.result()
        first, last = self._ranges.get(partition, (offset, offset))
        self._ranges[partition] = (min(first, offset), max(last, offset))

    def end(self, *, as_json: bool) -> None:
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        places = sorted(self._ranges.items())
        if as_json:
            show_json(
                {
                    "topic": self._topic,
                    "records": self._written,
                    "bytes": self._bytes,
                    "partitions": [
                        {"partition": partition, "first_offset": first, "last_offset": last}
                        for partition, (first, last) in places
                    ],
                }
            )
            return
        lost = self._sent - self._written
        summary = f"{plural(self._written, 'record')} written to {self._topic}"
        if len(places) == 1 and places[0][1][0] >= 0:
            partition, (first, last) = places[0]
            offsets = f"offset {first}" if first == last else f"offsets {first} to {last}"
            summary += f", partition {partition}, {offsets}"
        elif len(places) > 1:
            summary += f", in {len(places)} partitions"
        say(summary + (f"; {lost:,} not confirmed." if lost else "."))


def _split(text: bytes, separator: bytes, number: int) -> Line:
    key, found, value = text.partition(separator)
    if not found:
        raise Misuse(f"line {number} has no key: {separator.decode()!r} does not occur in it")
    return Line(value, key)


def _from_json(text: bytes, number: int) -> Line:
    """A line as `ottla consume --format json` writes it; only the value is required."""
    try:
        fields = json.loads(text)
        return Line(
            _json_bytes(fields, "value"),
            _json_bytes(fields, "key"),
            tuple(
                (str(item["name"]), _json_bytes(item, "value"))
                for item in fields.get("headers") or ()
            ),
            fields.get("timestamp"),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Misuse(
            f'line {number} is not a record: expected JSON like {{"key": "k", "value": "v"}}'
        ) from None


def _json_bytes(fields: dict[str, str | None], name: str) -> bytes | None:
    encoded = fields.get(f"{name}_base64")
    if encoded is not None:
        return b64decode(encoded, validate=True)
    text = fields.get(name)
    return None if text is None else text.encode()


async def _wait_readable(descriptor: int) -> bool:
    """Wait until the descriptor is readable; False if the system cannot tell (/dev/null)."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    try:
        loop.add_reader(descriptor, readable.set)
    except PermissionError:
        return False
    try:
        await readable.wait()
    finally:
        loop.remove_reader(descriptor)
    return True
