"""Options shared by all tools that contact a cluster, and their error handling.

The client is imported when a command runs, so that help is fast.
"""

import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeVar

import typer

from ottla.cli.tasks.bootstrap_option import BOOTSTRAP_DEFAULT as BOOTSTRAP_DEFAULT
from ottla.cli.tasks.bootstrap_option import Bootstrap as Bootstrap

if TYPE_CHECKING:
    from ottla.client.cluster import Cluster

Value = TypeVar("Value")

FAILED, MISUSED, INTERRUPTED = 1, 2, 130
RARE_SIMILARITY = 0.6
TELL_AFTER_MS, TELL_AGAIN_MS, TROUBLE_IS_OVER_MS = 1_500, 10_000, 5_000

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


class Misuse(Exception):
    """A usage error; the sentence says what is allowed."""


def ask(work: "Callable[[Cluster], Awaitable[Value]]", bootstrap: str) -> Value:
    """Run `work` with a cluster; an error ends the program with a sentence."""
    from ottla.client.errors import ClientError
    from ottla.client.groups import UnknownGroup
    from ottla.client.metadata import UnknownTopic
    from ottla.client.session import run

    async def guided(cluster: "Cluster") -> Value:
        cluster.on_trouble = Trouble(cluster.clock.monotonic).noticed
        try:
            return await work(cluster)
        except UnknownTopic as failure:
            raise ClientError(await _with_nearest_name(cluster, failure)) from failure
        except UnknownGroup as failure:
            raise ClientError(await _with_nearest_group(cluster, failure)) from failure

    with failures_told():
        try:
            return run(guided, bootstrap)
        except ValueError as failure:
            raise Misuse(str(failure)) from failure


class Trouble:
    """Reports why a command waits, except for short interruptions."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._since = self._seen_at = now()
        self._told_at: int | None = None

    def noticed(self, failure: Exception) -> None:
        from ottla.cli.views.terminal import note

        now = self._now()
        if now - self._seen_at > TROUBLE_IS_OVER_MS:
            self._since, self._told_at = now, None
        self._seen_at = now
        patience_ms = TELL_AFTER_MS if self._told_at is None else TELL_AGAIN_MS
        if now - (self._told_at or self._since) >= patience_ms:
            self._told_at = now
            note(f"ottla: {failure}; trying again")


@contextmanager
def failures_told() -> Iterator[None]:
    """Turn expected errors into a sentence and an exit status."""
    from ottla.client.errors import ClientError
    from ottla.model.errors import Damaged, Refusal

    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        end_quietly()
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except Misuse as failure:
        fail(str(failure), MISUSED)
    except OSError as failure:
        name = f"{failure.filename}: " if failure.filename else ""
        fail(f"{name}{(failure.strerror or str(failure)).lower()}")
    except (ClientError, Damaged, Refusal) as failure:
        fail(str(failure))


def fail(sentence: str, status: int = FAILED) -> NoReturn:
    from ottla.cli.views.terminal import note

    note(f"ottla: {sentence}")
    raise typer.Exit(status)


def end_quietly() -> NoReturn:
    """The reader of our output has closed the pipe (`| head`)."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # For the flush at exit.
    raise typer.Exit(0)


def parse_pairs(pairs: list[str], option: str) -> dict[str, str]:
    """Parse `name=value` options; raises Misuse naming the option."""
    parsed: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise Misuse(f"{option} {pair!r}: expected name=value")
        parsed[name.strip()] = value
    return parsed


async def _with_nearest_name(cluster: "Cluster", failure: Exception) -> str:
    from difflib import get_close_matches

    from ottla.client.admin import Admin
    from ottla.client.errors import ClientError
    from ottla.client.metadata import UnknownTopic

    assert isinstance(failure, UnknownTopic)
    try:
        names = [topic.name or "" for topic in await Admin(cluster).describe_topics()]
    except ClientError:
        return str(failure)
    near = get_close_matches(failure.name, names, 1, RARE_SIMILARITY)
    if near:
        return f"{failure}; did you mean {near[0]!r}?"
    if not names:
        return f"{failure}, nor any other: make it with 'ottla topics create {failure.name}'"
    return f"{failure}; 'ottla topics list' shows those there are"


async def _with_nearest_group(cluster: "Cluster", failure: Exception) -> str:
    from difflib import get_close_matches

    from ottla.client.errors import ClientError
    from ottla.client.groups import Groups, UnknownGroup

    assert isinstance(failure, UnknownGroup)
    try:
        names = [item.group for item in await Groups(cluster).listed()]
    except ClientError:
        return str(failure)
    if failure.name in names:
        return f"group {failure.name!r} is not of consumers: 'ottla groups list' shows its type"
    near = get_close_matches(failure.name, names, 1, RARE_SIMILARITY)
    if near:
        return f"{failure}; did you mean {near[0]!r}?"
    return f"{failure}; 'ottla groups list' shows those there are"
