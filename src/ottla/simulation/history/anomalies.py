"""What a history can have wrong with it, and the cases of it that were found."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from ottla.simulation.history.operations import Operation

CASES_MAX: Final = 20  # Of each anomaly; the rest is counted.


class Anomaly(StrEnum):
    # What is in the log.
    PHANTOM = "phantom"  # Nobody sent it.
    INCONSISTENT_OFFSETS = "inconsistent offsets"  # Two values at one offset.
    DUPLICATE = "duplicate"  # One value at two offsets.
    # What was written and read.
    ABORTED_READ = "aborted read"  # G1a: its writer knows that it failed.
    PRECOMMITTED_READ = "precommitted read"  # By the transaction that wrote it.
    CIRCULAR_READ = "circular read"  # G1c: each transaction read what the next one wrote.
    LOST_WRITE = "lost write"  # Acknowledged; what lies behind it was read, and it never.
    UNSEEN = "unseen"  # Acknowledged, and not there at the end.
    VANISHED = "vanished"  # Once read, and not there at the end.
    # In which order.
    POLL_SKIP = "poll skip"
    NONMONOTONIC_POLL = "nonmonotonic poll"
    INTERNAL_POLL_SKIP = "internal poll skip"
    INTERNAL_NONMONOTONIC_POLL = "internal nonmonotonic poll"
    NONMONOTONIC_SEND = "nonmonotonic send"
    INTERNAL_NONMONOTONIC_SEND = "internal nonmonotonic send"
    # Groups.
    LOST_COMMIT = "lost commit"  # "None" after something had been committed.
    UNEXPLAINED_COMMIT = "unexplained commit"  # Not what anyone committed, or replaced since.
    TWO_OWNERS = "two owners"  # Of one partition in one generation.


@dataclass(frozen=True, slots=True)
class Case:
    text: str
    operations: tuple[int, ...]  # Their indexes.


@dataclass(slots=True)
class Findings:
    cases: list[Case] = field(default_factory=list)
    count: int = 0


@dataclass(slots=True)
class Report:
    anomalies: dict[Anomaly, Findings] = field(default_factory=dict)
    # What looks like an anomaly, and is allowed to those who did it.
    normal: dict[Anomaly, Findings] = field(default_factory=dict)
    operations: int = 0

    @property
    def is_good(self) -> bool:
        return not self.anomalies

    def note(
        self, anomaly: Anomaly, text: str, *operations: Operation, is_normal: bool = False
    ) -> None:
        where = self.normal if is_normal else self.anomalies
        findings = where.setdefault(anomaly, Findings())
        findings.count += 1
        if len(findings.cases) < CASES_MAX:
            findings.cases.append(Case(text, tuple(operation.index for operation in operations)))

    def __str__(self) -> str:
        lines = [
            f"{anomaly} x {findings.count}: {case.text} (operations {_listed(case.operations)})"
            for anomaly, findings in self.anomalies.items()
            for case in findings.cases[:3]
        ]
        return "\n".join(lines) or f"{self.operations} operations, no anomaly"


def _listed(indexes: tuple[int, ...]) -> str:
    return ", ".join(map(str, indexes))
