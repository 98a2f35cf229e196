"""A broker in a process beside the test.

Parent and child exchange lines of JSON over the child's stdin and stdout. The child ends when its
stdin is closed, so that it never outlives the test run.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TextIO

from ottla.env.loop import DispatchLoop
from ottla.env.network import Address
from ottla.protocol.apis import ApiKey
from ottla.testing.faults import FaultOrder
from ottla.testing.hosted_broker import HostedBroker, run_on

STOP_SECONDS_MAX = 30.0


class BrokerFailed(Exception):
    """The broker's process could not execute a command; the message is its error."""


class BrokerProcess:
    def __init__(self, data: str, settings: Mapping[str, str], port: int) -> None:
        self._order = {"data": data, "settings": dict(settings), "port": port}
        self._child: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child is not None else None

    def start(self) -> Address:
        assert self._child is None, "it is stopped before it is started again"
        self._child = subprocess.Popen(
            [sys.executable, "-m", "ottla.testing.process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            host, port = self._ask("start", **self._order)
        except BaseException:
            self.kill()
            raise
        self._order["port"] = port
        return Address(host, port)

    def stop(self, *, cleanly: bool) -> None:
        if self._child is None:
            return
        if not cleanly:
            self.kill()
            return
        self._ask("stop")
        self._wait()

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._wait()

    def close(self) -> None:
        self.kill()

    def inject(self, order: FaultOrder) -> None:
        self._ask("inject", **asdict(order))

    def clear_faults(self) -> None:
        self._ask("clear_faults")

    def drop_connections(self) -> int:
        return int(self._ask("drop_connections"))

    def requests(self, api_key: ApiKey) -> list[bytes]:
        return [b64decode(frame) for frame in self._ask("requests", api_key=int(api_key))]

    def cut(self) -> None:
        """Drop all traffic until `heal`; commands still reach it."""
        self._ask("cut")

    def heal(self) -> None:
        self._ask("heal")

    def _ask(self, what: str, **arguments: object) -> Any:  # noqa: ANN401
        child = self._child
        assert child is not None, "the broker is running"
        assert child.stdin is not None, "it was made with pipes"
        assert child.stdout is not None, "it was made with pipes"
        with self._lock:
            try:
                child.stdin.write(json.dumps([what, arguments]) + "\n")
                child.stdin.flush()
                line = child.stdout.readline()
            except BrokenPipeError:
                line = ""
        if not line:
            raise BrokerFailed(f"the broker's process ended with status {child.wait()}")
        error, result = json.loads(line)
        if error:
            raise BrokerFailed(error)
        return result

    def _wait(self) -> None:
        child, self._child = self._child, None
        assert child is not None, "the process was started"
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()
        try:
            child.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            raise


class Child:
    """The child's side: executes the parent's commands, and answers each of them."""

    def __init__(self, orders: TextIO, answers: TextIO) -> None:
        self._orders = orders
        self._answers = answers
        self._loop = DispatchLoop()
        self._hosted: HostedBroker | None = None

    def run(self) -> None:
        listening = threading.Thread(target=self._listen, daemon=True)
        run_on(self._loop, listening.start)

    def _listen(self) -> None:
        for line in self._orders:
            what, arguments = json.loads(line)
            future = asyncio.run_coroutine_threadsafe(self._obey(what, arguments), self._loop)
            try:
                answer = [None, future.result()]
            except Exception as error:  # noqa: BLE001  Whatever it is, the parent is to hear it.
                answer = [f"{type(error).__name__}: {error}", None]
            self._answers.write(json.dumps(answer) + "\n")
            self._answers.flush()
            if what == "stop":
                break
        else:
            os._exit(1)  # The parent is gone.
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _obey(self, what: str, arguments: dict[str, Any]) -> Any:  # noqa: ANN401
        if what == "start":
            self._hosted = HostedBroker(**arguments)
            return await self._hosted.start()
        assert self._hosted is not None, "start comes first"
        match what:
            case "stop":
                await self._hosted.stop(cleanly=True)
            case "inject":
                self._hosted.inject(FaultOrder(**arguments))
            case "clear_faults":
                self._hosted.clear_faults()
            case "drop_connections":
                return self._hosted.drop_connections()
            case "requests":
                frames = self._hosted.requests(ApiKey(arguments["api_key"]))
                return [b64encode(frame).decode() for frame in frames]
            case "cut":
                self._hosted.network.cut()
            case "heal":
                self._hosted.network.heal()
            case _:
                raise ValueError(f"{what!r} is not an order")
        return None


if __name__ == "__main__":
    Child(sys.stdin, sys.stdout).run()
