"""What a group coordinator knows about topics: it reads the broker's image through this seam."""

from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import NamedTuple, Protocol

from ottla.model.types import Uuid


class TopicFacts(NamedTuple):
    name: str
    id: Uuid
    partitions: int


class Topics(Protocol):
    def named(self, name: str) -> TopicFacts | None: ...
    def by_id(self, topic_id: Uuid) -> TopicFacts | None: ...
    def names(self) -> Iterable[str]: ...


class NoTopics:
    """For groups that need none: a cluster without topics."""

    def named(self, name: str) -> TopicFacts | None:  # noqa: ARG002
        return None

    def by_id(self, topic_id: Uuid) -> TopicFacts | None:  # noqa: ARG002
        return None

    def names(self) -> Iterable[str]:
        return ()


class BadExpression(ValueError):
    """A regular expression that cannot be understood, and why."""


# Compiles an expression for whole names; BadExpression if it cannot.
CompileExpression = Callable[[str], Callable[[str], bool]]


def no_expressions(_: str) -> Callable[[str], bool]:
    raise BadExpression("Regular expressions are not served here.")


def metadata_hash(facts: Iterable[TopicFacts]) -> int:
    """Differs whenever a topic that the group reads comes, goes or grows; 0 for none."""
    digest = blake2b(digest_size=8)
    is_any = False
    for one in sorted(facts):
        is_any = True
        digest.update(one.name.encode() + b"\0" + one.id + one.partitions.to_bytes(4, "big"))
    return int.from_bytes(digest.digest(), "big", signed=True) if is_any else 0
