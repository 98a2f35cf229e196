"""The port for those who watch. A loopback socket is the real thing, and costs a millisecond."""

import asyncio
from collections.abc import Callable

import pytest

from ottla.broker.metrics.endpoint import HEAD_BYTES_MAX, MetricsEndpoint
from ottla.broker.metrics.metrics import Metrics
from ottla.broker.settings.endpoints import HostPort


def ask(request: bytes, health: Callable[[], str | None] = lambda: None) -> bytes:
    async def talk() -> bytes:
        endpoint = MetricsEndpoint(Metrics(), health)
        where = await endpoint.start(HostPort("127.0.0.1", 0))
        reader, writer = await asyncio.open_connection(where.host, where.port)
        writer.write(request)
        writer.write_eof()
        try:
            return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()
            await endpoint.close()

    return asyncio.run(talk())


def test_metrics_are_served_as_text() -> None:
    answer = ask(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert f"Content-Length: {len(body)}".encode() in head
    assert b"ottla_bytes_in_total 0\n" in body


def test_health_is_ok_or_says_what_is_wrong() -> None:
    request = b"GET /health HTTP/1.1\r\n\r\n"
    assert ask(request).endswith(b"\r\n\r\nok\n")
    ill = ask(request, lambda: "starting")
    assert ill.startswith(b"HTTP/1.1 503")
    assert ill.endswith(b"starting\n")


@pytest.mark.parametrize(
    ("request_head", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", b"405"),
        (b"HEAD /health HTTP/1.0\r\n\r\n", b"200"),
        (b"hello\r\n\r\n", b"400"),
    ],
)
def test_other_requests_get_what_http_has_for_them(request_head: bytes, status: bytes) -> None:
    assert ask(request_head).split(b" ")[1] == status


@pytest.mark.parametrize("garbage", [b"", b"GET /metrics", b"x" * (HEAD_BYTES_MAX * 3)])
def test_garbage_gets_no_answer(garbage: bytes) -> None:
    assert ask(garbage) == b""
