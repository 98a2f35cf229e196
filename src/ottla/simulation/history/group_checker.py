"""Whether what groups were told about their offsets and owners could have happened.

An operation took effect at some moment between its beginning and its end; one that nobody answered
perhaps, at any time since. A fetched offset must come from a commit that may have been the last.
"""

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field

from ottla.simulation.history.anomalies import Anomaly, Report
from ottla.simulation.history.operations import (
    NO_OFFSET,
    Commit,
    Committed,
    Key,
    Kind,
    Operation,
    Outcome,
    Owned,
)


@dataclass(slots=True)
class _Commits:
    """Of one group's offset of one key."""

    writes: dict[int, list[Operation]] = field(default_factory=lambda: defaultdict(list))
    # Acknowledged ones, by their end: the latest beginning of any that had ended by then.
    ended_ns: list[int] = field(default_factory=list)
    newest_began_ns: list[int] = field(default_factory=list)

    def latest_before(self, began_ns: int) -> int | None:
        """When the newest commit began that had surely taken effect at that moment."""
        count = bisect_left(self.ended_ns, began_ns)
        return self.newest_began_ns[count - 1] if count else None


def check_groups(history: list[Operation], report: Report) -> None:
    of_groups = [operation for operation in history if operation.kind in (Kind.GROUP, Kind.TXN)]
    commits = _commits(of_groups)
    owners: dict[tuple[str, int, Key], Operation] = {}
    for operation in of_groups:
        for step in operation.steps:
            if isinstance(step, Committed) and operation.outcome is Outcome.OK:
                _check_fetched(operation, step, commits[step.group, step.key], report)
            elif isinstance(step, Owned):
                for key in step.keys:
                    owner = owners.setdefault((step.group, step.generation, key), operation)
                    if owner.process != operation.process:
                        text = (
                            f"{key} belongs to {owner.process} and {operation.process} "
                            f"in generation {step.generation} of {step.group}"
                        )
                        report.note(Anomaly.TWO_OWNERS, text, owner, operation)


def _commits(history: list[Operation]) -> dict[tuple[str, Key], _Commits]:
    commits: dict[tuple[str, Key], _Commits] = defaultdict(_Commits)
    for operation in sorted(history, key=lambda operation: operation.ended_ns):
        if operation.outcome is Outcome.FAIL:
            continue
        for step in operation.steps:
            if not isinstance(step, Commit):
                continue
            known = commits[step.group, step.key]
            known.writes[step.offset].append(operation)
            if operation.outcome is Outcome.OK:
                known.ended_ns.append(operation.ended_ns)
                known.newest_began_ns.append(max([operation.began_ns, *known.newest_began_ns[-1:]]))
    return commits


def _check_fetched(
    operation: Operation, step: Committed, commits: _Commits, report: Report
) -> None:
    latest = commits.latest_before(operation.began_ns)
    where = f"{step.key} of {step.group}"
    if step.offset == NO_OFFSET:
        if latest is not None:
            report.note(Anomaly.LOST_COMMIT, f"{where} was committed and is not", operation)
        return
    for write in commits.writes.get(step.offset, ()):
        # What nobody answered may take effect late.
        ended_ns = operation.ended_ns if write.outcome is Outcome.INFO else write.ended_ns
        if write.began_ns <= operation.ended_ns and (latest is None or latest <= ended_ns):
            return
    text = f"{where} is {step.offset}, which is not what was committed last"
    report.note(Anomaly.UNEXPLAINED_COMMIT, text, operation)
