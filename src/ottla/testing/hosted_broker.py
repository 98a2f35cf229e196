"""A broker on its own event loop, in the test's thread or in a process beside it.

All calls that are not coroutines come from the loop. A restart keeps the port.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace

from ottla.broker.node.auto_format import prepare_up
from ottla.broker.node.broker import Broker
from ottla.broker.node.process import real_environment
from ottla.broker.settings.settings import Settings, zero_configuration
from ottla.env.environment import Environment
from ottla.env.loop import DispatchLoop
from ottla.env.network import Address
from ottla.protocol.apis import ApiKey
from ottla.testing.faults import FaultOrder
from ottla.testing.isolation import CuttableNetwork

LISTENER = "PLAINTEXT"


class HostedBroker:
    """One broker after another in one data directory."""

    def __init__(self, data: str, settings: Mapping[str, str], port: int) -> None:
        self.address: Address | None = None
        self._data = data
        self._settings = settings
        self._port = port
        self._broker: Broker | None = None
        self._env: Environment | None = None
        self._network: CuttableNetwork | None = None

    async def start(self) -> Address:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, DispatchLoop), "sockets are served by its selector"
        assert self._broker is None, "it is stopped before it is started again"
        defaults = zero_configuration(self._data, port=self._port, controller_port=0)
        settings = Settings.load({**defaults, **self._settings}, host_name=lambda: "localhost")
        real = real_environment(loop)
        self._network = CuttableNetwork(real.network)
        env = self._env = replace(real, network=self._network)
        try:
            prepare_up(env.disk, settings, env.clock.wall(), env.random.randbytes)
            broker = Broker(settings, env)
            await broker.start()
        except BaseException:
            await self.stop(cleanly=False)
            raise
        self._broker = broker
        self.address = broker.addresses[LISTENER]
        self._port = self.address.port
        return self.address

    async def stop(self, *, cleanly: bool) -> None:
        broker, self._broker = self._broker, None
        if broker is not None:
            await (broker.stop() if cleanly else broker.abort())
        if self._env is not None:
            self._env.workers.close()
            self._env = None

    def inject(self, order: FaultOrder) -> None:
        self._running().faults.add(order.api_key(), order.fault(), order.times)

    def clear_faults(self) -> None:
        self._running().faults.clear()

    def drop_connections(self) -> int:
        connections = self._running().connections
        count = len(connections.open)
        connections.close_all()
        return count

    def requests(self, api_key: ApiKey) -> list[bytes]:
        """Frames of the requests that clients sent, since the broker started."""
        return self.network.requests.frames(api_key)

    @property
    def network(self) -> CuttableNetwork:
        assert self._network is not None, "the broker is running"
        return self._network

    def _running(self) -> Broker:
        assert self._broker is not None, "the broker is running"
        return self._broker


def run_on(loop: DispatchLoop, ready: Callable[[], None]) -> None:
    """Run the loop until it is stopped, then clean up."""
    asyncio.set_event_loop(loop)
    loop.call_soon(ready)
    try:
        loop.run_forever()
        _cancel_all(loop)
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _cancel_all(loop: DispatchLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
