"""The topics of the committed image as group coordinators see them, and expressions over names.

Expressions are run by RE2, which takes time linear in the name: a client cannot hold up a broker.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from ottla.groups.topics import BadExpression, TopicFacts
from ottla.model.types import Uuid

if TYPE_CHECKING:
    from ottla.broker.server import Broker
    from ottla.metadata.cluster import Topic


class ImageTopics:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    def named(self, name: str) -> TopicFacts | None:
        return _facts(self._broker.image.topics_by_name.get(name))

    def by_id(self, topic_id: Uuid) -> TopicFacts | None:
        return _facts(self._broker.image.topics_by_id.get(topic_id))

    def names(self) -> Iterable[str]:
        return self._broker.image.topics_by_name


def _facts(topic: "Topic | None") -> TopicFacts | None:
    return None if topic is None else TopicFacts(topic.name, topic.id, len(topic.partitions))


def compile_expression(expression: str) -> Callable[[str], bool]:
    re2 = import_module("re2")  # Only those who subscribe by expression pay for it.
    options = re2.Options()
    options.log_errors = False
    try:
        pattern = re2.compile(expression, options=options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        raise BadExpression(
            reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        ) from error
    return lambda name: pattern.fullmatch(name) is not None
