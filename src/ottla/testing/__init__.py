"""A real broker for tests: `with Broker() as broker: ...`, and the pytest fixture `ottla_broker`.

`Cluster` is several of them.

Imports are lazy, since pytest imports this package in every test run of every project where Ottla
is installed.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.testing.broker import Broker as Broker
    from ottla.testing.cluster import Cluster as Cluster

__all__ = ["Broker", "Cluster"]


def __getattr__(name: str) -> object:
    if name == "Broker":
        from ottla.testing.broker import Broker

        return Broker
    if name == "Cluster":
        from ottla.testing.cluster import Cluster

        return Cluster
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
