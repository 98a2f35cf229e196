"""Runs a handler for each record of some topics, with retries and dead letters.

    from ottla.consumer import consume

    def handle(record):
        print(record.topic, record.offset, record.value)

    consume(["orders"], handle, group="billing", bootstrap_servers="localhost:9092")

Needs the extra `ottla[consumer]`. Imports are lazy.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.client.message import Message as Record
    from ottla.consumer.errors import CannotConsume as CannotConsume
    from ottla.consumer.errors import CannotDeadLetter as CannotDeadLetter
    from ottla.consumer.errors import ConsumerError as ConsumerError
    from ottla.consumer.errors import HandlerFailed as HandlerFailed
    from ottla.consumer.errors import Reject as Reject
    from ottla.consumer.runner import Runner as Runner
    from ottla.consumer.runner import consume as consume
    from ottla.consumer.settings import Backoff as Backoff
    from ottla.consumer.settings import Delivery as Delivery

_HOMES = {
    "Backoff": ("ottla.consumer.settings", "Backoff"),
    "CannotConsume": ("ottla.consumer.errors", "CannotConsume"),
    "CannotDeadLetter": ("ottla.consumer.errors", "CannotDeadLetter"),
    "ConsumerError": ("ottla.consumer.errors", "ConsumerError"),
    "Delivery": ("ottla.consumer.settings", "Delivery"),
    "HandlerFailed": ("ottla.consumer.errors", "HandlerFailed"),
    "Record": ("ottla.client.message", "Message"),
    "Reject": ("ottla.consumer.errors", "Reject"),
    "Runner": ("ottla.consumer.runner", "Runner"),
    "consume": ("ottla.consumer.runner", "consume"),
}

__all__ = [
    "Backoff",
    "CannotConsume",
    "CannotDeadLetter",
    "ConsumerError",
    "Delivery",
    "HandlerFailed",
    "Record",
    "Reject",
    "Runner",
    "consume",
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)
