"""The environment of a broker: all seams, passed to it once."""

from dataclasses import dataclass
from random import Random

from ottla.env.clock import Clock
from ottla.env.disk import Disk
from ottla.env.network import Network
from ottla.env.workers import Workers


@dataclass(frozen=True, slots=True)
class Environment:
    clock: Clock
    disk: Disk
    network: Network
    workers: Workers
    random: Random
