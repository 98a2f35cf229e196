"""Answers of a machine, as values that tests can collect and compare."""

from typing import Any

from ottla.broker.machines.answer import Answer
from ottla.model.errors import Refusal


def outcome(answer: Answer[Any]) -> Any:  # noqa: ANN401
    """The reply, or the Refusal that was given instead."""
    try:
        return answer.result()
    except Refusal as refusal:
        return refusal


def collect(answer: Answer[Any], into: list[Any]) -> None:
    """Append the outcome to a list, once there is one."""
    answer.then(lambda given: into.append(outcome(given)))
