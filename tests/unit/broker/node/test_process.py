"""What is told to the person who starts a broker. The whole of it runs in tests/process."""

import errno
import socket

import pytest

from ottla.broker.node.process import explained
from ottla.broker.settings.settings import Settings, zero_configuration
from ottla.model.errors import FormatRefused

SETTINGS = Settings.load(zero_configuration("data", port=9092))


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (FormatRefused("It is Kafka's."), "It is Kafka's."),
        (BlockingIOError("data/.lock is locked"), "stop the broker that uses this directory"),
        (PermissionError(errno.EACCES, "Permission denied", "data"), "data: Permission denied"),
        (OSError(errno.EADDRNOTAVAIL, "Cannot assign"), "check the host in listeners"),
        (socket.gaierror(-2, "Name or service not known"), "check the host in listeners"),
        (OSError("something else"), "something else."),
    ],
)
def test_every_refusal_is_a_sentence(error: Exception, sentence: str) -> None:
    told = explained(error, SETTINGS)
    assert sentence in told
    assert told.endswith(".")
    assert "\n" not in told


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        mine = Settings.load(zero_configuration("data", port=port))
        told = explained(OSError(errno.EADDRINUSE, "in use"), mine)
    assert told.startswith(f"127.0.0.1:{port} is in use")
