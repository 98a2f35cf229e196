"""One step of the answer script: a request that is made for every version that has it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tests.conformance.answer_world import World


@dataclass
class Step:
    name: str
    versions: Iterable[int]
    request: Callable[[World, int], Any]
    settles: bool = False  # It changes topics, which Apache Kafka's broker learns a moment later.


class Steps(list[Step]):
    """Steps in their order, added by a decorator."""

    def add(self, name: str, versions: Iterable[int], settles: bool = False):  # noqa: ANN201
        def added(request: Callable[[World, int], Any]) -> Callable[[World, int], Any]:
            self.append(Step(name, versions, request, settles))
            return request

        return added
