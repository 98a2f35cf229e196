"""The machine that a simulated broker runs on: its disk, and one process of the broker at a time.

Killed, the process is simply gone, in the middle of whatever it did; the disk keeps what the kind
of death leaves. A broker that ends by itself is started again, as a supervisor would.
"""

import asyncio
import logging
from collections.abc import Callable
from random import Random

from ottla.broker.node.auto_format import prepare_up
from ottla.broker.node.broker import Broker
from ottla.broker.settings.settings import Settings
from ottla.env.environment import Environment
from ottla.model.errors import Damaged, Refusal
from ottla.simulation.history.history import Violation
from ottla.simulation.plans.plan import Plan
from ottla.simulation.world.clock import VirtualClock
from ottla.simulation.world.disk import SimulatedDisk
from ottla.simulation.world.disk_costs import DiskCosts
from ottla.simulation.world.network import SimulatedNetwork
from ottla.simulation.world.process import Process
from ottla.simulation.world.trace import Trace
from ottla.simulation.world.workers import SimulatedWorkers

logger = logging.getLogger(__name__)

CAPACITY_BYTES = 1 << 40
RESTART_MS = 200
STARTS_MAX = 500
POLL_SECONDS = 0.01


class MachineDisk(SimulatedDisk):
    """A disk whose operations show in the trace, and whose crashes kill the process at once."""

    def __init__(self, source: Random, clock: VirtualClock, trace: Trace, host: str) -> None:
        self._name = f"disk of {host}"
        self._clock = clock
        self._trace = trace
        self.on_crash: Callable[[], None] = _nothing
        self.on_step: Callable[[str, str], None] = _nothing  # Hears of every operation.
        self.on_begin: Callable[[str, str], None] = _nothing  # Hears of it before it happens.
        super().__init__(source, capacity_bytes=CAPACITY_BYTES)

    @property
    def now_ms(self) -> int:
        return self._clock.wall()

    @now_ms.setter
    def now_ms(self, _: int) -> None:
        pass

    def unplug(self) -> None:
        """Nothing can be done with it until the next `kill` or `cut_power`."""
        self._is_down = True

    def heal(self) -> None:
        """Forget the failures that were set and have not happened."""
        self._failures.clear()
        self.capacity_bytes = CAPACITY_BYTES

    def begin(self, operation: str, path: str) -> None:
        self.on_begin(operation, path)

    def step(self, operation: str, path: str, generation: int | None = None) -> bool:
        self._trace.note(f"{self._name} {operation} {path}")
        self.on_step(operation, path)
        crashes = super().step(operation, path, generation)
        if crashes:
            self.on_crash()
        return crashes


class Machine:
    def __init__(
        self,
        plan: Plan,
        network: SimulatedNetwork,
        clock: VirtualClock,
        *,
        host: str,
        settings: Settings,
    ) -> None:
        self.host = host
        self.directories = list(settings.log_dirs)
        self._source = f"{plan.seed}/{host}"
        self.disk = MachineDisk(Random(f"disk/{self._source}"), clock, network.trace, host)
        self.costs = DiskCosts(
            Random(f"costs/{self._source}"), plan.disk_factor, lambda: self.broker is not None
        )
        self.disk.on_begin = self.costs.began
        self.process: Process | None = None
        self.broker: Broker | None = None  # While it serves.
        self.latest: Broker | None = None  # Also while it starts or stops.
        self.starts = 0
        self._dead: list[Process] = []
        self._down_until = 0
        self._plan = plan
        self._network = network
        self.clock = clock  # The broker's own, which may be set wrong.
        self._settings = settings

    def supervise(self) -> None:
        """Start the broker if it is down and its time to be down is over."""
        if self.process is None and self._down_until <= self.clock.monotonic():
            self._start()

    async def wait_serving(self) -> Broker:
        while self.broker is None:
            self.supervise()
            await asyncio.sleep(POLL_SECONDS)
        return self.broker

    def kill(self, down_ms: int) -> None:
        """As kill -9: the page cache survives."""
        self._note("kill")
        self._die(down_ms)

    def cut_power(self, down_ms: int) -> None:
        self._note("power loss")
        self._die(down_ms)
        self.disk.cut_power()

    def pause(self) -> None:
        """As SIGSTOP: its connections stay, and nothing answers."""
        if self.process is not None:
            self._note("pause")
            self.process.pause()

    def resume(self) -> None:
        if self.process is not None and self.process.is_paused:
            self._note("resume")
            self.process.resume()

    async def stop(self, down_ms: int = 0) -> None:
        """Stop the broker cleanly, if it serves."""
        broker, process = self.broker, self.process
        if broker is None or process is None:
            return
        self._note("stop")
        self.broker = None
        stopping = process.start(broker.stop())
        await asyncio.wait([stopping, process.killed], return_when=asyncio.FIRST_COMPLETED)
        if process.is_alive:
            self._die(down_ms)
            stopping.result()

    def _start(self) -> None:
        self.starts += 1
        self._note(f"start {self.starts}")
        if self.starts > STARTS_MAX:
            raise Violation(f"the broker was started {STARTS_MAX} times and never stays")
        self.bury()
        self.disk.kill()  # Whatever the last process held is free.
        self.disk.on_crash = lambda: self._die(RESTART_MS)
        self._network.power_on(self.host)
        process = self.process = Process(f"{self.host}/{self.starts}")
        task = process.start(self._run(process))
        task.add_done_callback(lambda task: self._ended(process, task))

    def _die(self, down_ms: int) -> None:
        process, self.process = self.process, None
        self.broker = self.latest = None
        self._down_until = self.clock.monotonic() + down_ms
        if process is not None:
            process.kill()
            self._dead.append(process)

    def end(self) -> None:
        self._die(0)
        self.bury()

    def bury(self) -> None:
        """Take apart what killed processes left, while the disk hears nobody."""
        assert self.process is None, "the living are not buried"
        self.disk.unplug()
        dead, self._dead = self._dead, []
        for process in dead:
            process.bury()

    async def _run(self, process: Process) -> None:
        env = Environment(
            clock=self.clock,
            disk=self.disk,
            network=self._network.host(self.host),
            workers=SimulatedWorkers(Random(f"workers/{self._source}/{self.starts}")),
            random=Random(f"broker/{self._source}/{self.starts}"),
        )
        prepare_up(self.disk, self._settings, self.clock.wall(), env.random.randbytes)
        broker = Broker(self._settings, env)
        broker.partitions.hosting.at_once_max = self._plan.hosted_at_once
        if self.process is process:
            self.latest = broker
        await broker.start()
        if self.process is process:
            self.broker = broker
            self._note("serving")
        await broker.failed

    def _note(self, what: str) -> None:
        self._network.trace.note(f"{self.host}: {what}")

    def _ended(self, process: Process, task: "asyncio.Task[None]") -> None:
        """It could not start, or not go on: only a sick disk is a reason."""
        if self.process is not process or task.cancelled():
            return
        error = task.exception()
        self._note(f"the broker ended: {type(error).__name__}")
        self._die(RESTART_MS)
        if isinstance(error, OSError | Damaged | Refusal) and self._plan.has_sick_disk:
            return
        raise Violation(f"the broker ended by itself: {error!r}") from error


def _nothing(*_: str) -> None:
    pass
