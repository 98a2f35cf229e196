"""Whether what the clients of a cluster did and saw could have happened with a correct one.

Pure: operations in, a report of anomalies out. It knows only what clients were told, so it judges
real processes and simulated ones alike. Groups are in `group_checker.py`, and which record lies
where in `observed_log.py`.

A send must be in the log if its operation was acknowledged, or if nobody knows what became of it
and another of its records was read: an operation is done as a whole or not at all.
"""

from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter

from ottla.model.types import Offset
from ottla.simulation.history.anomalies import Anomaly, Report
from ottla.simulation.history.group_checker import check_groups
from ottla.simulation.history.observed_log import ObservedLog
from ottla.simulation.history.operations import (
    Assign,
    Key,
    Kind,
    Operation,
    Outcome,
    Poll,
    Send,
    Value,
)

Position = tuple[Offset, Operation]


def check(operations: Iterable[Operation]) -> Report:
    """All operations of a history, in any order; a value that is sent twice is a ValueError."""
    history = sorted(operations, key=lambda operation: operation.index)
    report = Report(operations=len(history))
    logs = _observe(history)
    due = _due(history, logs)
    for log in logs.values():
        log.number()
    _check_logs(logs, report)
    _check_reads(history, logs, report)
    _check_cycles(history, logs, report)
    for key, log in logs.items():
        _check_kept(key, log, due, report)
        _check_still_there(key, log, report)
    _PollOrder(logs, report).check(history)
    _check_send_order(history, logs, report)
    check_groups(history, report)
    return report


def _observe(history: list[Operation]) -> dict[Key, ObservedLog]:
    logs: dict[Key, ObservedLog] = {}
    for operation in history:
        for step in operation.steps:
            if isinstance(step, Send):
                log = logs.setdefault(step.key, ObservedLog())
                if step.value in log.writers:
                    raise ValueError(f"{step.value!r} is sent to {step.key} a second time")
                log.writers[step.value] = operation
            elif isinstance(step, Poll):
                _observe_poll(operation, step, logs)
    return logs


def _observe_poll(operation: Operation, poll: Poll, logs: dict[Key, ObservedLog]) -> None:
    """Whatever was returned counts, even in what failed later: a poller only sees what is safe."""
    for key, records in poll.found.items():
        log = logs.get(key)
        if log is None:
            log = logs[key] = ObservedLog()
        for offset, value in records:
            log.readers.setdefault(value, operation)
            log.holds(offset, value, operation)
        if operation.kind is Kind.DRAIN:
            log.drained.update(value for _, value in records)
            if log.drain_began_ns is None:  # Operations come by their beginning.
                log.drain_began_ns = operation.began_ns


def _due(history: list[Operation], logs: dict[Key, ObservedLog]) -> set[int]:
    """The operations whose sends must be in their logs; where they lie is noted there."""
    due = set()
    for operation in history:
        is_due = operation.outcome is Outcome.OK
        if operation.outcome is Outcome.INFO:
            is_due = any(send.value in logs[send.key].readers for send in _sends(operation))
        if is_due:
            due.add(operation.index)
            for send in _sends(operation):
                if send.offset is not None:
                    logs[send.key].holds(send.offset, send.value, operation)
    return due


def _sends(operation: Operation) -> Iterator[Send]:
    return (step for step in operation.steps if isinstance(step, Send))


def _polled(operation: Operation) -> Iterator[tuple[Key, Offset, Value]]:
    for step in operation.steps:
        if isinstance(step, Poll):
            for key, records in step.found.items():
                for offset, value in records:
                    yield key, offset, value


def _check_logs(logs: dict[Key, ObservedLog], report: Report) -> None:
    for key, log in logs.items():
        for offset, values in log.values.items():
            if len(values) > 1:
                text = f"{key} at {offset} is {' and '.join(map(repr, values))}"
                report.note(Anomaly.INCONSISTENT_OFFSETS, text, *values.values())
        for value, offsets in log.offsets.items():
            if len(offsets) > 1:
                who = [log.values[offset][value] for offset in offsets]
                report.note(Anomaly.DUPLICATE, f"{value!r} lies in {key} at {offsets}", *who)


def _check_reads(history: list[Operation], logs: dict[Key, ObservedLog], report: Report) -> None:
    for key, log in logs.items():
        for value, reader in log.readers.items():
            writer = log.writers.get(value)
            if writer is None:
                text = f"{key} at {log.offsets[value]} holds {value!r}, which nobody sent"
                report.note(Anomaly.PHANTOM, text, reader)
            elif writer.outcome is Outcome.FAIL:
                text = f"{value!r} was read from {key}, and its sending had failed"
                report.note(Anomaly.ABORTED_READ, text, writer, reader)
    for operation in history:
        if len(operation.steps) > 1:
            own = {(send.key, send.value) for send in _sends(operation)}
            for key, _, value in _polled(operation) if own else ():
                if (key, value) in own:
                    text = f"{value!r} was read from {key} by the transaction that sends it"
                    report.note(Anomaly.PRECOMMITTED_READ, text, operation)


def _check_cycles(history: list[Operation], logs: dict[Key, ObservedLog], report: Report) -> None:
    """Only what reads and writes can lie on a cycle of who read from whom."""
    both = [
        operation
        for operation in history
        if len(operation.steps) > 1 and any(_sends(operation)) and any(_polled(operation))
    ]
    sources: dict[int, set[int]] = {operation.index: set() for operation in both}
    for operation in both:
        for key, _, value in _polled(operation):
            writer = logs[key].writers.get(value)
            if writer is not None and writer.index in sources and writer is not operation:
                sources[operation.index].add(writer.index)
    try:
        TopologicalSorter(sources).prepare()
    except CycleError as error:
        circle = error.args[1]
        known = {operation.index: operation for operation in both}
        text = f"{len(circle) - 1} transactions read from each other in a circle"
        report.note(Anomaly.CIRCULAR_READ, text, *(known[index] for index in circle))


def _check_kept(key: Key, log: ObservedLog, due: set[int], report: Report) -> None:
    """Whatever must be in the log is read, by those who came past it, and by all at the end."""
    places = (log.first_place(value) for value in log.readers)
    bound = max((place for place in places if place is not None), default=-1)
    for value, writer in log.writers.items():
        if value in log.readers or writer.index not in due:
            continue
        place = log.last_place(value)
        if place is not None and place <= bound:
            text = f"{value!r} of {key} at {log.offsets[value]} is acknowledged and was passed over"
            report.note(Anomaly.LOST_WRITE, text, writer)
        elif log.drain_began_ns is not None and writer.ended_ns <= log.drain_began_ns:
            text = f"{value!r} of {key} is acknowledged and not there at the end"
            report.note(Anomaly.UNSEEN, text, writer)


def _check_still_there(key: Key, log: ObservedLog, report: Report) -> None:
    if log.drain_began_ns is None:
        return
    for value, reader in log.readers.items():
        if value not in log.drained and reader.ended_ns <= log.drain_began_ns:
            text = f"{value!r} of {key} at {log.offsets[value]} was read, and is gone"
            report.note(Anomaly.VANISHED, text, reader)


class _PollOrder:
    """Every process reads each key one record after the other, from where it was."""

    def __init__(self, logs: dict[Key, ObservedLog], report: Report) -> None:
        self._logs = logs
        self._report = report
        self._subscribed: set[str] = set()  # A group may send them back, or past others' work.
        self._positions: dict[str, dict[Key, Position]] = {}

    def check(self, history: list[Operation]) -> None:
        for operation in history:
            positions = self._positions.setdefault(operation.process, {})
            if operation.kind is Kind.SUBSCRIBE:
                self._subscribed.add(operation.process)
            elif operation.kind in (Kind.CRASH, Kind.DRAIN):
                positions.clear()
            for step in operation.steps:
                if isinstance(step, Assign):
                    for key in [key for key in positions if key not in step.keys]:
                        del positions[key]
            for key in operation.rebalanced:
                positions.pop(key, None)
            self._check_polls(operation, positions)

    def _check_polls(self, operation: Operation, positions: dict[Key, Position]) -> None:
        for step in operation.steps:
            if not isinstance(step, Poll):
                continue
            for key, records in step.found.items():
                if key in operation.rebalanced or not records:
                    continue
                position = positions.get(key)
                for offset, value in records:
                    if position is not None and offset != position[0] + 1:
                        self._judge(operation, key, value, position, offset)
                    position = (offset, operation)
                assert position is not None, "there were records"
                positions[key] = position

    def _judge(
        self, operation: Operation, key: Key, value: Value, before: Position, offset: Offset
    ) -> None:
        log = self._logs[key]
        jump = log.place(offset) - log.place(before[0])
        if jump == 1:
            return
        is_internal = before[1] is operation
        if jump > 1:
            anomaly = Anomaly.INTERNAL_POLL_SKIP if is_internal else Anomaly.POLL_SKIP
        else:
            anomaly = (
                Anomaly.INTERNAL_NONMONOTONIC_POLL if is_internal else Anomaly.NONMONOTONIC_POLL
            )
        text = f"{operation.process} read {key} at {before[0]}, then {value!r} at {offset}"
        is_normal = not is_internal and operation.process in self._subscribed
        self._report.note(anomaly, text, before[1], operation, is_normal=is_normal)


def _check_send_order(
    history: list[Operation], logs: dict[Key, ObservedLog], report: Report
) -> None:
    """What a process sent later lies later; of what nobody ever saw, nothing is known."""
    last: dict[tuple[str, Key], tuple[int, Value, Operation]] = {}
    for operation in history:
        for send in _sends(operation):
            place = logs[send.key].first_place(send.value)
            if place is None:
                continue
            where = (operation.process, send.key)
            before = last.get(where)
            if before is not None and place <= before[0]:
                anomaly = (
                    Anomaly.INTERNAL_NONMONOTONIC_SEND
                    if before[2] is operation
                    else Anomaly.NONMONOTONIC_SEND
                )
                text = (
                    f"{operation.process} sent {send.value!r} after {before[1]!r} "
                    f"to {send.key}, where it lies before it"
                )
                report.note(anomaly, text, before[2], operation)
            last[where] = (place, send.value, operation)
