"""Ports of tests: free, reserved, and released."""

import socket
import subprocess
import sys

import pytest

from ottla.testing import ports
from ottla.testing.ports import HOST, Ports


def test_ports_are_free_and_distinct() -> None:
    taken = Ports(20)
    assert len(set(taken.numbers)) == 20
    for port in taken.numbers:
        socket.create_server((HOST, port)).close()
    taken.close()
    assert taken.numbers == []


def test_another_process_does_not_get_a_reserved_port() -> None:
    (port,) = (kept := Ports(1)).numbers
    code = f"""
from ottla.testing import ports
ports.PORTS = range({port}, {port + 1})
ports.Ports(1)
"""
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run([sys.executable, "-c", code], timeout=1, check=False)
    kept.close()
    subprocess.run([sys.executable, "-c", code], timeout=10, check=True)


def test_a_port_in_use_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    (one, other) = (free := Ports(2)).numbers
    free.close()
    monkeypatch.setattr(ports, "PORTS", (one, other))
    with socket.create_server((HOST, one)):
        free = Ports(1)
        assert free.numbers == [other]
        free.close()
