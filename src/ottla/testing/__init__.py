"""A real broker for tests: `with Broker() as broker: ...`, and the pytest fixture `ottla_broker`.

Nothing else is imported before it is used, since pytest imports this package in every test run of
every project where Ottla is installed.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.testing.broker import Broker as Broker

__all__ = ["Broker"]


def __getattr__(name: str) -> object:
    if name == "Broker":
        from ottla.testing.broker import Broker

        return Broker
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
