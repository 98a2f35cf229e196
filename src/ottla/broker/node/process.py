"""The door through which a process becomes a broker: the real environment, signals, the end.

`run` blocks until the broker was told to stop (SIGINT, SIGTERM) or cannot go on. What goes wrong at
the start is told in one sentence, by `StartRefused`.
"""

import asyncio
import errno
import gc
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import SystemRandom

from ottla.broker.metrics.endpoint import MetricsEndpoint
from ottla.broker.node.broker import Broker
from ottla.broker.node.gauges import add_gauges, add_turns
from ottla.broker.settings.endpoints import HostPort
from ottla.broker.settings.settings import Settings, SettingsError
from ottla.env.clock import RealClock
from ottla.env.descriptors import RESERVE, RESERVED_MAX
from ottla.env.disk import Disk, real_disk
from ottla.env.environment import Environment
from ottla.env.loop import DispatchLoop
from ottla.env.sockets import SocketNetwork
from ottla.env.system import raise_descriptor_limit
from ottla.env.turns import Turns, TurnWatch
from ottla.env.workers import ThreadWorkers
from ottla.model.errors import Damaged, FormatRefused
from ottla.model.types import WallTime
from ottla.storage.identity import DirectoryRefused

logger = logging.getLogger(__name__)

# Makes the directories ready; returns what it did, a line each.
Prepare = Callable[[Disk, Settings, WallTime, Callable[[int], bytes]], list[str]]

# Requests leave no cycles behind, so what looks for them may come seldom.
GC_THRESHOLDS = (10_000, 20, 20)

# How long a worker that computes may keep Python's lock from the loop, which asks for it after
# every system call: with the default of 5 ms, a turn of twenty calls would take 100 ms.
SWITCH_SECONDS = 0.0005

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StartRefused(Exception):
    """The broker cannot start; the text is a sentence that says why and what to do."""


def real_environment(loop: DispatchLoop) -> Environment:
    """The machine as it is: its clocks, disk, sockets, threads and randomness."""
    workers = ThreadWorkers()
    return Environment(
        clock=RealClock(),
        disk=real_disk(),
        network=SocketNetwork(loop, workers),
        workers=workers,
        random=SystemRandom(),
    )


def run(settings: Settings, prepare: Prepare, announce: Callable[[Broker], None]) -> None:
    """Start a broker, `announce` it once it serves, and run it until a signal stops it."""
    raise_descriptor_limit()
    RESERVE.keep(RESERVED_MAX)
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.disable()  # Until it serves: what a start makes is there to stay.
    loop = DispatchLoop()
    asyncio.set_event_loop(loop)
    env = real_environment(loop)
    try:
        loop.run_until_complete(_serve(settings, env, prepare, announce))
    finally:
        env.workers.close()
        loop.close()


async def _serve(
    settings: Settings, env: Environment, prepare: Prepare, announce: Callable[[Broker], None]
) -> None:
    stopped = _stop_on_signals()
    broker = Broker(settings, env)
    problem: str | None = "starting"
    watched = MetricsEndpoint(broker.metrics, lambda: problem)
    try:
        if settings.ottla_metrics_listener is not None:
            where = await watched.start(settings.ottla_metrics_listener)
            logger.info("metrics at http://%s/metrics", where)
        for line in prepare(env.disk, settings, env.clock.wall(), env.random.randbytes):
            logger.info("%s", line)
        if not await _started(broker, stopped):
            return
    except (OSError, SettingsError, DirectoryRefused, FormatRefused, Damaged) as error:
        raise StartRefused(explained(error, settings)) from error
    add_gauges(broker)
    problem = None
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()
    announce(broker)
    with _turns_measured(broker):
        await asyncio.wait((stopped, broker.failed), return_when=asyncio.FIRST_COMPLETED)
    if broker.failed.done():
        broker.failed.result()  # Raises what ended it; the files are left as they are.
    problem = "stopping"
    logger.info("stopping")
    await broker.stop()
    await watched.close()
    logger.info("stopped")


@contextmanager
def _turns_measured(broker: Broker) -> Iterator[None]:
    """While the broker serves; a start and a stop may take the loop for as long as they need."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, DispatchLoop), "sockets are served by its selector"
    turns = Turns()
    add_turns(broker.metrics, turns)
    watch = TurnWatch(turns, threading.get_ident())
    loop.selector.turns = turns
    watch.start()
    try:
        yield
    finally:
        watch.stop()
        loop.selector.turns = None


async def _started(broker: Broker, stopped: "asyncio.Future[None]") -> bool:
    """False if it was told to stop before: a node may wait for long until its quorum is there."""
    starting = asyncio.ensure_future(broker.start())
    await asyncio.wait((starting, stopped), return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        logger.info("stopping before it has started")
        starting.cancel()
        await asyncio.wait([starting])
        return False
    starting.result()
    return True


def _stop_on_signals() -> "asyncio.Future[None]":
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[None] = loop.create_future()

    def stop() -> None:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)  # A second signal ends the process at once.
        if not stopped.done():  # Two signals may have come before the first was handled.
            stopped.set_result(None)

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop)
    return stopped


def explained(error: Exception, settings: Settings) -> str:
    """What to tell the person who started the broker."""
    if isinstance(error, BlockingIOError):
        return f"{error}: stop the broker that uses this directory, or choose another one."
    if not isinstance(error, OSError):
        return str(error)
    if error.errno == errno.EADDRINUSE:
        where = _address_in_use(settings)
        return f"{where} is in use: stop the program that listens there, or choose another port."
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        addresses = ", ".join(str(endpoint) for endpoint in settings.listeners)
        return f"cannot listen on {addresses}: {error.strerror}; check the host in listeners."
    if error.filename:
        return f"{error.filename}: {error.strerror}; choose a directory this user can write to."
    return f"{error}."


def _address_in_use(settings: Settings) -> str:
    listeners = [HostPort(e.host, e.port) for e in settings.listeners]
    if settings.ottla_metrics_listener is not None:
        listeners.append(settings.ottla_metrics_listener)
    for where in listeners:
        family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((where.host, where.port))
            except OSError:
                return str(where)
    return " or ".join(map(str, listeners))
