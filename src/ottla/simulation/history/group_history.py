"""What the members of groups did and were told, and what that must never contradict.

G1  A partition has one owner; another is given it after it was revoked, or its owner fenced.
G2  What was committed stays, until a commit, a deletion or its expiry replaces it.
G3  A generation, an epoch or an instance that is over changes nothing.

Everything is seen from outside: a request began when it was sent and ended when its answer came,
and took effect at some moment between. What nobody answered may take effect at any time later.
"""

import math
import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from ottla.model.types import Millis, Offset, TopicPartition
from ottla.simulation.history.history import Violation
from ottla.simulation.world.loop import MILLISECOND

NO_OFFSET: Final = -1
SLACK_NS: Final = 2 * MILLISECOND  # A broker counts whole milliseconds.
LATE_NS: Final = 5_000 * MILLISECOND  # So long may a request be under way that nobody waits for.
DELAYED_NS: Final = 30_000 * MILLISECOND  # The same where nodes are paused, or links cut.
DELETION: Final = "deletion"
EXPIRY: Final = "expiry"

Place = TopicPartition


class Fate(Enum):
    UNKNOWN = "unknown"
    DONE = "done"
    REFUSED = "refused"


@dataclass(eq=False, slots=True)
class Standing:
    """One life of a member: as what it sees itself, and when it last heard that it is one."""

    name: str
    group: str
    instance: str | None
    session_ms: Millis
    rebalance_ms: Millis
    now_ns: Callable[[], int]
    owned: set[Place] = field(default_factory=set)
    contact_ns: int = 0  # When the last request was sent that was answered as a member's,
    settled_ns: int = 0  # and the last whose answer left it all that it owned.
    since_ns: int = 0  # When it first heard of that membership.
    is_in: bool = False
    is_alive: bool = True
    is_replaced: bool = False  # Perhaps, by another member of its instance.

    def heard(self, sent_ns: int, *, is_settled: bool = True) -> None:
        if not self.is_in:
            self.is_in, self.since_ns = True, self.now_ns()
        self.contact_ns = max(self.contact_ns, sent_ns)
        if is_settled:
            self.settled_ns = max(self.settled_ns, sent_ns)

    def is_out(self) -> None:
        """It left, was refused, or is dead: nothing is its own any more."""
        self.is_in = False
        self.owned.clear()

    def may_be_fenced(self, now_ns: int) -> bool:
        """Nothing was heard of it for its session, or it had to give up something long ago."""
        is_silent = now_ns - self.contact_ns + SLACK_NS >= self.session_ms * MILLISECOND
        is_late = now_ns - self.settled_ns + SLACK_NS >= self.rebalance_ms * MILLISECOND
        return is_silent or is_late

    def is_certainly_in(self, now_ns: int) -> bool:
        return self.is_alive and self.is_in and not self.may_be_fenced(now_ns)


@dataclass(eq=False, slots=True)
class Write:
    """Something that changes a committed offset: a commit, or its deletion."""

    token: str
    offset: Offset
    began_ns: float
    ended_ns: float = math.inf
    fate: Fate = Fate.UNKNOWN


@dataclass(slots=True)
class Committed:
    """All writes of one offset of one group, and since when the newest that is done must show."""

    writes: dict[str, Write] = field(default_factory=dict)
    removals: list[Write] = field(default_factory=list)
    done_ns: list[float] = field(default_factory=list)
    newest_began_ns: list[float] = field(default_factory=list)

    def done(self, write: Write) -> None:
        newest = max([write.began_ns, *self.newest_began_ns[-1:]])
        self.done_ns.append(write.ended_ns)
        self.newest_began_ns.append(newest)

    def is_replaced(self, write: Write, read_began_ns: int) -> bool:
        """Whether another write came wholly after this one, and wholly before the read."""
        count = bisect_left(self.done_ns, read_began_ns)
        return bool(count) and self.newest_began_ns[count - 1] > write.ended_ns


@dataclass(slots=True)
class Grant:
    standing: Standing
    sent_ns: int
    received_ns: int


class GroupHistory:
    def __init__(self, now_ns: Callable[[], int], *, is_delayed: bool = False) -> None:
        self.now_ns = now_ns
        self.deposed_ns = -1  # When a deposed coordinator last answered anything.
        self._late_ns = DELAYED_NS if is_delayed else LATE_NS
        self.commits = self.refusals = self.grants_made = self.fetches = 0
        # Called before something counts as lost: someone may know that it expired.
        self.look: Callable[[], None] = _nothing
        self.standings: dict[str, list[Standing]] = defaultdict(list)
        self.committed: dict[tuple[str, Place], Committed] = {}
        self._grants: dict[tuple[str, Place], list[Grant]] = defaultdict(list)
        self._owners: dict[tuple[str, int, Place], str] = {}
        self._synced: dict[str, tuple[int, int]] = {}  # The newest generation, and since when.
        self._handled: dict[tuple[str, Place], Offset] = defaultdict(int)
        self._tokens = 0
        # The highest offset that any leader has called committed: members get nothing beyond it.
        self.committed_end: Callable[[Place], Offset] = lambda _: sys.maxsize

    def may_be_over(self, sent_ns: float) -> bool:
        """Whether the answer to a request of `sent_ns` may be a deposed coordinator's.

        It does not know of its successor, and answers what it need not write from its own state.
        """
        return self.deposed_ns >= sent_ns

    # Members.

    def joins(self, standing: Standing) -> None:
        self.standings[standing.group].append(standing)

    def ends(self, standing: Standing) -> None:
        standing.is_alive = False
        standing.is_out()
        self.standings[standing.group].remove(standing)

    def takes_over(self, standing: Standing) -> None:
        """A join without a member id is sent, or answered: it may replace its instance's member."""
        for other in self.standings[standing.group]:
            if other.instance == standing.instance:
                other.is_replaced = True
        standing.is_replaced = False

    def given(self, standing: Standing, places: Iterable[Place], sent_ns: int) -> None:
        """An answer to a request of `sent_ns` gives it these partitions, in addition."""
        now = self.now_ns()
        for place in sorted(places):
            self.grants_made += 1
            self._check_free(standing, place, sent_ns, now)
            if not self.may_be_over(sent_ns):
                self._grants[standing.group, place].append(Grant(standing, sent_ns, now))
            standing.owned.add(place)

    def _check_free(self, standing: Standing, place: Place, sent_ns: int, now: int) -> None:
        if standing.may_be_fenced(now):
            return  # The answer comes too late to count.
        for other in self.standings[standing.group]:
            if other is standing or other.is_replaced:
                continue
            if place not in other.owned or other.may_be_fenced(now):
                continue
            if self.may_be_over(min(sent_ns, other.contact_ns)):
                continue
            is_same_instance = other.instance is not None and other.instance == standing.instance
            if is_same_instance and other.since_ns >= sent_ns:
                continue  # It took over while the answer was on its way.
            raise Violation(
                f"G1: {place} of {standing.group} is given to {standing.name}, but {other.name} "
                f"has not given it up and was heard of {_ms(now - other.contact_ns)} ago"
            )

    def synced(
        self, standing: Standing, generation: int, places: Iterable[Place], sent_ns: int
    ) -> None:
        """A classic member was given its part of a generation."""
        self.look()  # The group may be another one, which began anew.
        self.check_generation(standing, generation, sent_ns, "is given its part of")
        who = standing.instance or standing.name
        for place in places:
            owner = self._owners.setdefault((standing.group, generation, place), who)
            if owner != who:
                raise Violation(
                    f"G1: {place} belongs to {owner} and to {who} in generation {generation} of "
                    f"{standing.group}"
                )
        if generation > self._synced.get(standing.group, (-1, 0))[0]:
            self._synced[standing.group] = (generation, self.now_ns())
        standing.heard(sent_ns)
        self.given(standing, places, sent_ns)

    def check_generation(
        self, standing: Standing, generation: int, sent_ns: int, does: str
    ) -> None:
        """Something that a member of a generation did at `sent_ns` was let through."""
        newest, since_ns = self._synced.get(standing.group, (-1, 0))
        if generation < newest and since_ns < sent_ns and not self.may_be_over(sent_ns):
            raise Violation(
                f"G3: {standing.name} {does} generation {generation} of {standing.group}, "
                f"where generation {newest} has begun {_ms(sent_ns - since_ns)} before"
            )

    # Offsets.

    def handled(self, group: str, place: Place, first: Offset, end: Offset) -> None:
        """Records from `first` on were handled; none before may have been left out."""
        if end > self.committed_end(place):
            raise Violation(
                f"I8: {group} reads {place} up to {end}, committed up to "
                f"{self.committed_end(place)}"
            )
        reached = self._handled[group, place]
        if first > reached:
            raise Violation(f"G2: {group} goes on at {first} of {place}, and handled {reached}")
        self._handled[group, place] = max(reached, end)

    def new_token(self) -> str:
        self._tokens += 1
        return f"t{self._tokens}"

    def writing(self, group: str, place: Place, offset: Offset, token: str) -> Write:
        """A commit is sent; NO_OFFSET for its deletion."""
        write = Write(token, offset, self.now_ns())
        committed = self.committed.setdefault((group, place), _nothing_committed())
        if offset == NO_OFFSET:
            committed.removals.append(write)
        else:
            committed.writes[token] = write
        return write

    def written(self, group: str, place: Place, write: Write) -> None:
        write.ended_ns, write.fate = self.now_ns(), Fate.DONE
        self.committed[group, place].done(write)
        self.commits += 1

    def refused(self, write: Write) -> None:
        write.fate = Fate.REFUSED
        self.refusals += 1

    def expired(self, group: str, place: Place) -> None:
        """It was seen to go, and may; a crash may still bring it back."""
        self.given_up(self.writing(group, place, NO_OFFSET, EXPIRY))

    def given_up(self, write: Write) -> None:
        """Nobody waits any more for what is not answered."""
        if write.fate is Fate.UNKNOWN:
            write.ended_ns = self.now_ns() + self._late_ns

    def is_deleting(self, group: str, place: Place) -> bool:
        """Whether someone has deleted this, or may have, and it was not committed since."""
        committed = self.committed.setdefault((group, place), _nothing_committed())
        now = self.now_ns()
        return any(
            write.token == DELETION
            and write.fate is not Fate.REFUSED
            and not committed.is_replaced(write, now)
            for write in committed.removals
        )

    def committed_by(self, standing: Standing, place: Place, write: Write) -> None:
        """A member's commit was taken: it must have been the owner, as far as anyone knew."""
        own_ns = -1
        for grant in self._grants[standing.group, place]:
            if grant.standing is standing:
                own_ns = grant.received_ns
        for grant in self._grants[standing.group, place]:
            is_later = grant.standing is not standing and grant.sent_ns > own_ns
            if is_later and grant.received_ns < write.began_ns:
                raise Violation(
                    f"G3: a commit of {standing.name} for {place} of {standing.group} was taken, "
                    f"which had been given to {grant.standing.name} before"
                )

    def done_by_outsider(self, group: str, write: Write) -> None:
        """Only a group without members lets others change its offsets."""
        for standing in self.standings[group]:
            if self.may_be_over(standing.contact_ns):
                continue
            if standing.is_certainly_in(self.now_ns()) and standing.since_ns < write.began_ns:
                raise Violation(
                    f"G3: an outsider changed {group}'s offsets, and {standing.name} is in it"
                )

    def fetched(self, group: str, place: Place, offset: Offset, token: str, began_ns: int) -> None:
        """Someone who asked at `began_ns` was told that this is committed."""
        self.fetches += 1
        committed = self.committed.setdefault((group, place), _nothing_committed())
        if offset == NO_OFFSET:
            if not _may_be_none(committed, began_ns):
                self.look()
            if not _may_be_none(committed, began_ns) and not self.may_be_over(began_ns):
                raise Violation(f"G2: {group} has no offset of {place}, and committed one")
            return
        write = committed.writes.get(token)
        if write is None or write.offset != offset:
            raise Violation(
                f"G2: {group} has {offset} ({token}) of {place}, which nobody committed"
            )
        if write.fate is Fate.REFUSED:
            raise Violation(f"G3: {group} has {offset} ({token}) of {place}, which was refused")
        if committed.is_replaced(write, began_ns) and not self.may_be_over(began_ns):
            raise Violation(
                f"G2: {group} has {offset} ({token}) of {place} still, or again: a later commit "
                "was taken"
            )

    def forget_group(self, group: str) -> None:
        """It was deleted, or may have been: its generations start anew."""
        self._synced.pop(group, None)
        self._owners = {key: who for key, who in self._owners.items() if key[0] != group}


def _nothing_committed() -> Committed:
    committed = Committed()
    committed.removals.append(Write("", NO_OFFSET, -1.0, -1.0, Fate.DONE))
    return committed


def _may_be_none(committed: Committed, began_ns: int) -> bool:
    return any(
        write.fate is not Fate.REFUSED and not committed.is_replaced(write, began_ns)
        for write in committed.removals
    )


def _ms(duration_ns: int) -> str:
    return f"{duration_ns / MILLISECOND:.1f} ms"


def _nothing() -> None:
    pass
