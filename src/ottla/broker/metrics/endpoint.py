"""The port for those who watch a broker: `/metrics` for Prometheus and `/health` for everyone else.

As little HTTP as that takes: one small request per connection, answered and closed. It has limits
of its own, so that whoever can reach the port can do no more than ask.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from ottla.broker.metrics.metrics import Metrics
from ottla.broker.settings.endpoints import HostPort

logger = logging.getLogger(__name__)

HEAD_BYTES_MAX: Final = 8192
REQUEST_SECONDS_MAX: Final = 5.0
CONNECTIONS_MAX: Final = 16
TEXT: Final = "text/plain; charset=utf-8"
PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"

# None while all is well, else what is wrong, in a few words.
Health = Callable[[], str | None]


class MetricsEndpoint:
    def __init__(self, metrics: Metrics, health: Health) -> None:
        self._metrics, self._health = metrics, health
        self._server: asyncio.Server | None = None
        self._open = 0

    async def start(self, listener: HostPort) -> HostPort:
        """Listen; raises OSError if the address cannot be had. Returns the address it is."""
        assert self._server is None, "an endpoint starts once"
        self._server = await asyncio.start_server(
            self._serve, listener.host, listener.port, limit=HEAD_BYTES_MAX
        )
        host, port = self._server.sockets[0].getsockname()[:2]
        return HostPort(host, port)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open <= CONNECTIONS_MAX:
                async with asyncio.timeout(REQUEST_SECONDS_MAX):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(self._answer(head))
                    await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # Whoever asks badly gets no answer.
        finally:
            self._open -= 1
            writer.close()

    def _answer(self, head: bytes) -> bytes:
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return _response(400, TEXT, "not HTTP\n")
        method, path = words[0], words[1].split(b"?")[0]
        if method not in (b"GET", b"HEAD"):
            return _response(405, TEXT, "only GET\n")
        status, kind, body = self._page(path)
        return _response(status, kind, body, with_body=method == b"GET")

    def _page(self, path: bytes) -> tuple[int, str, str]:
        if path == b"/metrics":
            return 200, PROMETHEUS, self._metrics.as_text()
        if path == b"/health":
            problem = self._health()
            return (200, TEXT, "ok\n") if problem is None else (503, TEXT, f"{problem}\n")
        return 404, TEXT, "try /metrics or /health\n"


_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    503: "Service Unavailable",
}


def _response(status: int, kind: str, text: str, with_body: bool = True) -> bytes:
    body = text.encode()
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (body if with_body else b"")
