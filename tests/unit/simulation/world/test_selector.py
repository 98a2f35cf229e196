"""A simulated poll says of a socket what epoll would say."""

from random import Random

from ottla.env.loop import READ, WRITE
from ottla.env.network import Address
from ottla.simulation.world.loop import VirtualLoop
from ottla.simulation.world.network import LinkSettings, SimulatedNetwork
from ottla.simulation.world.selector import SimulatedDescriptors
from ottla.simulation.world.sockets import SimulatedSocket
from ottla.simulation.world.trace import Trace


class Ends:
    """Two connected sockets; the selector is that of the first one's host."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        network = SimulatedNetwork(self.loop, Random(1), Trace(lambda: 0))
        network.link = LinkSettings(again_probability=0, short_probability=0, window_bytes=300)
        hosts = network.host("a"), network.host("b")
        self.here, self.there = (SimulatedSocket(h, Address("x", 1), h.name) for h in hosts)
        self.here.other, self.there.other = self.there, self.here
        network.sockets += [self.here, self.there]
        self.selector: SimulatedDescriptors = hosts[0].selector
        self.wakes = 0
        hosts[0].selector.on_ready = self._woken

    def poll(self) -> list[int]:
        return [events for _, events in SimulatedDescriptors.select(self.selector, 0)]

    def arrive(self) -> None:
        self.loop.call_later(1, self.loop.stop)
        self.loop.run_forever()

    def _woken(self) -> None:
        self.wakes += 1


def test_socket_is_reported_for_as_long_as_it_is_ready() -> None:
    ends = Ends()
    ends.selector.register(ends.here, READ, "data")
    assert ends.poll() == []
    ends.there.send(b"hello")
    ends.arrive()
    assert ends.wakes == 1
    assert ends.poll() == ends.poll() == [READ]
    assert ends.here.recv_into(memoryview(bytearray(10))) == 5
    assert ends.poll() == []
    ends.loop.close()


def test_only_registered_events_are_reported() -> None:
    ends = Ends()
    ends.there.send(b"hello")
    ends.arrive()
    assert ends.poll() == []
    ends.selector.register(ends.here, WRITE, None)
    assert ends.poll() == [WRITE]
    ends.selector.modify(ends.here, READ | WRITE)
    assert ends.poll() == [READ | WRITE]
    ends.selector.unregister(ends.here)
    assert ends.poll() == []
    ends.loop.close()


def test_full_window_is_not_writable_until_a_third_of_it_is_read() -> None:
    ends = Ends()
    ends.selector.register(ends.here, WRITE)
    assert ends.here.send(bytes(1000)) == 300
    assert ends.poll() == []
    ends.arrive()
    ends.there.recv_into(memoryview(bytearray(50)))
    assert ends.poll() == []
    ends.there.recv_into(memoryview(bytearray(50)))
    assert ends.poll() == [WRITE]
    ends.loop.close()


def test_reset_and_end_of_the_stream_wake_a_reader() -> None:
    for break_it in ("reset", "close"):
        ends = Ends()
        ends.selector.register(ends.here, READ)
        getattr(ends.there, break_it)()
        ends.arrive()
        assert ends.wakes == 1
        assert ends.poll() == [READ]
        ends.loop.close()
