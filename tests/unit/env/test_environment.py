"""The environment of a broker is immutable."""

import dataclasses
from random import Random

import pytest

from ottla.env.clock import RealClock
from ottla.env.disk import real_disk
from ottla.env.environment import Environment
from ottla.env.loop import DispatchLoop
from ottla.env.sockets import SocketNetwork
from ottla.env.workers import InlineWorkers


def test_an_environment_does_not_change() -> None:
    loop, workers = DispatchLoop(), InlineWorkers()
    env = Environment(RealClock(), real_disk(), SocketNetwork(loop, workers), workers, Random(1))
    with pytest.raises(dataclasses.FrozenInstanceError):
        env.clock = RealClock()  # type: ignore[misc]
    assert env.workers is workers
    loop.close()
