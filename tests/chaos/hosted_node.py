"""`ottla start` of a node that cannot tell what is done to it from what happens to machines.

It cuts itself off from everyone at SIGUSR1 and comes back at SIGUSR2.
"""

import signal
from dataclasses import replace

from ottla.broker.node import process
from ottla.cli.main import main
from ottla.env.environment import Environment
from ottla.env.loop import DispatchLoop
from ottla.testing.isolation import CuttableNetwork

_real_environment = process.real_environment


def _cuttable_environment(loop: DispatchLoop) -> Environment:
    real = _real_environment(loop)
    network = CuttableNetwork(real.network)
    loop.add_signal_handler(signal.SIGUSR1, network.cut)
    loop.add_signal_handler(signal.SIGUSR2, network.heal)
    return replace(real, network=network)


if __name__ == "__main__":
    process.real_environment = _cuttable_environment
    main()
