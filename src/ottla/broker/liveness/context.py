"""What deciding who is alive needs of a broker: where it listens, and its quorum."""

from collections.abc import Mapping
from typing import Protocol

from ottla.broker.context import BrokerContext
from ottla.broker.controller.quorum_driver import QuorumDriver
from ottla.env.network import Address


class LivenessContext(BrokerContext, Protocol):
    @property
    def quorum(self) -> QuorumDriver: ...

    @property
    def addresses(self) -> Mapping[str, Address]:
        """Where each listener is bound."""
