"""Bugs of group coordinators to be switched on, each against one of the promises G1 to G5."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.broker.coordinators.machine_partition import MachinePartition
from ottla.broker.machines.host import MachineHost
from ottla.groups.classic.group import ClassicGroup, ClassicMember
from ottla.groups.classic.rebalance import JOIN, SESSION
from ottla.groups.consumer import membership as consumer_membership
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.groups import ConsumerGroups
from ottla.groups.consumer.membership import CONSUMER_SESSION, REVOCATION
from ottla.groups.consumer.reconciliation import Goal
from ottla.groups.coordinator import GroupCoordinator
from ottla.groups.offsets import offsets
from ottla.groups.turn import GroupCommand, Turn
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.machine import Decision
from ottla.model.types import TopicPartition

Mutant = Callable[[pytest.MonkeyPatch], None]

NEVER_MS = 1 << 40

# ruff: noqa: ANN401  Commands and replies are of many classes.


def gives_before_revoked(patch: pytest.MonkeyPatch) -> None:
    """G1: a new member of a consumer group gets a partition that another still owns."""
    patch.setattr(consumer_membership, "Goal", lambda *what: Goal(*what)._replace(owners={}))


def rebalances_without_waiting(patch: pytest.MonkeyPatch) -> None:
    """G1: a generation begins with those who came first, while the others still read."""
    _set_timers(patch, lambda kind, delay_ms: 0 if kind == JOIN else delay_ms)


def fences_too_early(patch: pytest.MonkeyPatch) -> None:
    """G1: a session ends before its time."""
    sessions = (SESSION, CONSUMER_SESSION)
    _set_timers(patch, lambda kind, delay_ms: delay_ms // 8 if kind in sessions else delay_ms)


def forgets_the_generation(patch: pytest.MonkeyPatch) -> None:
    """G1, G3: a group that was loaded counts its generations anew."""
    loaded = GroupCoordinator._loaded

    def loaded_anew(self: GroupCoordinator, turn: Turn, ticket: int, command: GroupCommand) -> None:
        for group in self.groups.values():
            group.generation = 0
        loaded(self, turn, ticket, command)

    patch.setattr(GroupCoordinator, "_loaded", loaded_anew)


def answers_before_appended(patch: pytest.MonkeyPatch) -> None:
    """G2: what is confirmed is written a little later."""
    perform_well = MachineHost._perform

    def perform(self: MachineHost[Any, Any, Any], decision: Decision[Any, Any]) -> None:
        if not isinstance(self._machine, GroupCoordinator):
            perform_well(self, decision)
            return
        if decision.records:
            for record in decision.records:
                self._machine.apply(0, record, None)
            loop = asyncio.get_running_loop()
            loop.call_later(0.05, self._append, decision)
        for change in decision.on_append:
            change()
        for ticket, reply in decision.replies:
            self._answer(ticket, reply)

    patch.setattr(MachineHost, "_perform", perform)


def serves_while_loading(patch: pytest.MonkeyPatch) -> None:
    """G2: whoever asks before the log is read hears that nothing was ever committed."""
    load = MachinePartition.load

    async def begin_and_load(self: MachinePartition[Any, Any]) -> None:
        self.begin()
        await asyncio.sleep(0.05)  # As if there were more to read.
        await load(self)

    patch.setattr(MachinePartition, "load", begin_and_load)


def loads_all_but_the_end(patch: pytest.MonkeyPatch) -> None:
    """G2: the last record of a log is not read again."""
    load = MachinePartition.load

    async def load_all_but_one(self: MachinePartition[Any, Any]) -> None:
        machine: Any = self._machine
        apply, kept = machine.apply, []

        def apply_the_one_before(offset: int, record: Any) -> None:
            if kept:
                apply(*kept.pop())
            kept.append((offset, record))

        machine.apply = apply_the_one_before
        await load(self)
        machine.apply = apply

    patch.setattr(MachinePartition, "load", load_all_but_one)


def takes_stale_generations(patch: pytest.MonkeyPatch) -> None:
    """G3: a commit counts, whoever sends it."""
    patch.setattr(offsets, "check_classic_commit", lambda group, request: None)


def takes_stale_epochs(patch: pytest.MonkeyPatch) -> None:
    """G3: the same in a consumer group."""
    patch.setattr(ConsumerGroups, "check_commit", lambda self, request, version: None)


def takes_fenced_instances(patch: pytest.MonkeyPatch) -> None:
    """G3: a static member goes on after another one took its place."""

    def check_member(self: ClassicGroup, member_id: str, instance_id: str | None) -> ClassicMember:
        member = self.members.get(self.static.get(instance_id or "", member_id))
        if member is None:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    patch.setattr(ClassicGroup, "check_member", check_member)


def waits_for_everyone(patch: pytest.MonkeyPatch) -> None:
    """G4: a rebalance ends when all have joined, and not before."""
    _set_timers(patch, lambda kind, delay_ms: NEVER_MS if kind == JOIN else delay_ms)


def waits_for_every_revocation(patch: pytest.MonkeyPatch) -> None:
    """G4: a member of a consumer group may keep what it should give up, for ever."""
    _set_timers(patch, lambda kind, delay_ms: NEVER_MS if kind == REVOCATION else delay_ms)


def keeps_the_dead(patch: pytest.MonkeyPatch) -> None:
    """G4: whoever crashed stays a member for ever."""
    sessions = (SESSION, CONSUMER_SESSION)
    _set_timers(patch, lambda kind, delay_ms: NEVER_MS if kind in sessions else delay_ms)


def expires_too_early(patch: pytest.MonkeyPatch) -> None:
    """G5: an offset of an empty group goes at the first occasion."""
    patch.setattr(offsets, "is_expired", lambda *_: True)
    patch.setattr("ottla.groups.consumer.groups.is_expired", lambda *_: True)


def expires_what_is_read(patch: pytest.MonkeyPatch) -> None:
    """G5: old offsets go, although members of the group rely on them."""
    patch.setattr(ConsumerGroup, "subscribed_topics", lambda self: set())

    def expired(
        group: ClassicGroup, committed: offsets.Committed, now: int, retention_ms: int
    ) -> Iterator[TopicPartition]:
        for place, value in committed.items():
            if now - value.commit_timestamp >= retention_ms:
                yield place

    patch.setattr(offsets, "expired", expired)


def _set_timers(patch: pytest.MonkeyPatch, change: Callable[[str, int], int]) -> None:
    set_timer = Turn.set_timer

    def set_changed(self: Turn, kind: str, group_id: str, member_id: str, delay_ms: int) -> None:
        set_timer(self, kind, group_id, member_id, change(kind, delay_ms))

    patch.setattr(Turn, "set_timer", set_changed)
