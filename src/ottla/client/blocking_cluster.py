"""A cluster for code that is not async, and nothing else: for processes that must start quickly.

    with BlockingCluster("localhost:9092") as opened:
        opened.run(find_offsets(opened.cluster, {place: LATEST}))

`blocking.Client` is this with an admin, a producer and readers.
"""

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

from ottla.client.cluster import ClientSettings
from ottla.client.session import open_cluster, parse_addresses
from ottla.env.loop import DispatchLoop

Value = TypeVar("Value")


class BlockingCluster:
    def __init__(self, bootstrap: str, settings: ClientSettings | None = None) -> None:
        addresses = parse_addresses(bootstrap)
        self._runner = asyncio.Runner(loop_factory=DispatchLoop)
        loop = self._runner.get_loop()
        assert isinstance(loop, DispatchLoop), "the runner made it"
        self.cluster = open_cluster(loop, addresses, settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.cluster.close()
        self._runner.close()

    def run(self, work: Coroutine[Any, Any, Value]) -> Value:
        """Do something that is async and wait for it."""
        return self._runner.run(work)
