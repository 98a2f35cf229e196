"""What a run comes to: gaps in the service, anomalies in its history, logs that differ."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from ottla.simulation.history.anomalies import Report
from ottla.simulation.history.history_checker import check
from ottla.simulation.history.operations import Key, Kind, Operation, Outcome, Poll, Send, Value
from tests.chaos.faults import Fault

BACK_SECONDS_MAX = 30.0
STEADY_SECONDS = 2.0  # A pause that is longer is a gap.
SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Gap:
    """Nothing was acknowledged in a partition meanwhile, though clients had something to send."""

    key: Key
    began_ns: int
    ended_ns: int

    @property
    def seconds(self) -> float:
        return (self.ended_ns - self.began_ns) / SECOND


@dataclass(frozen=True, slots=True)
class FaultOutcome:
    fault: Fault
    gap_seconds: float  # The longest of any partition between this fault and the next.
    back_seconds: float | None  # From the heal until every partition was written and read for good.


@dataclass(slots=True)
class Verdict:
    report: Report
    outcomes: list[FaultOutcome]
    gaps: list[Gap]
    failures: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return not self.failures


def judge(operations: list[Operation], faults: Sequence[Fault], groups: Collection[str]) -> Verdict:
    report = check(operations)
    acknowledged, read = moments(operations)
    outcomes = [
        FaultOutcome(
            fault,
            _longest_gap(acknowledged, fault.began_ns, _until(number, faults)),
            _back_seconds(fault.healed_ns, _until(number, faults), acknowledged, read),
        )
        for number, fault in enumerate(faults)
    ]
    verdict = Verdict(report, outcomes, _gaps(acknowledged))
    if not report.is_good:
        verdict.failures.append(str(report))
    for outcome in outcomes:
        back = outcome.back_seconds
        if back is None or back > BACK_SECONDS_MAX:
            shown = "never" if back is None else f"after {back:.1f} s"
            verdict.failures.append(f"after '{outcome.fault.what}' service was back {shown}")
    for group in groups:
        if left := left_out(operations, group):
            some = ", ".join(sorted(left)[:5])
            verdict.failures.append(f"group {group} never read {len(left)} records: {some}")
    return verdict


def moments(operations: list[Operation]) -> tuple[dict[Key, list[int]], dict[Key, list[int]]]:
    """When something was acknowledged, and when read, by partition."""
    acknowledged: dict[Key, list[int]] = defaultdict(list)
    read: dict[Key, list[int]] = defaultdict(list)
    for operation in operations:
        for step in operation.steps:
            if isinstance(step, Send) and operation.outcome is Outcome.OK:
                acknowledged[step.key].append(operation.ended_ns)
            elif isinstance(step, Poll) and operation.kind is not Kind.DRAIN:
                for key in step.found:
                    read[key].append(operation.ended_ns)
    for times in (*acknowledged.values(), *read.values()):
        times.sort()
    return acknowledged, read


def left_out(operations: list[Operation], group: str) -> set[Value]:
    """What was there at the end and no member of the group ever got."""
    there: set[Value] = set()
    got: set[Value] = set()
    for operation in operations:
        is_member = operation.process.startswith(f"{group}-")
        if not is_member and operation.kind is not Kind.DRAIN:
            continue
        values = got if is_member else there
        for step in operation.steps:
            if isinstance(step, Poll):
                values.update(value for found in step.found.values() for _, value in found)
    return there - got


def differing_replicas(log_directories: Sequence[Path], keys: Collection[Key]) -> list[str]:
    """Partitions whose replicas do not hold the same bytes; all nodes have stopped."""
    differing = []
    for key in keys:
        hashes = []
        for directory in log_directories:
            segments = sorted((directory / key).glob("*.log"))
            hashes.append(sha256(b"".join(segment.read_bytes() for segment in segments)).digest())
        if len(set(hashes)) > 1:
            differing.append(key)
    return differing


def _until(number: int, faults: Sequence[Fault]) -> int:
    healed_ns = faults[number].healed_ns
    if number + 1 < len(faults):
        return max(healed_ns, faults[number + 1].began_ns)
    return healed_ns + int(BACK_SECONDS_MAX * SECOND)


def _longest_gap(acknowledged: dict[Key, list[int]], began_ns: int, ended_ns: int) -> float:
    """What lies before and behind belongs to the faults before and after this one."""
    longest = 0
    for times in acknowledged.values():
        first = max(0, bisect_left(times, began_ns) - 1)
        last = bisect_left(times, ended_ns)
        for before, after in pairwise(times[first : last + 1]):
            longest = max(longest, min(after, ended_ns) - max(before, began_ns))
    return longest / SECOND


def _back_seconds(healed_ns: int, until_ns: int, *by_key: dict[Key, list[int]]) -> float | None:
    """A service that comes back and goes away again was not back."""
    latest = healed_ns
    for times_of in by_key:
        for times in times_of.values():
            place = bisect_left(times, healed_ns)
            if place == len(times):
                return None
            latest = max(latest, times[place])
            last = bisect_left(times, until_ns)
            for before, after in pairwise(times[place:last]):
                if after - before > STEADY_SECONDS * SECOND:
                    latest = max(latest, after)
    return (latest - healed_ns) / SECOND


def _gaps(acknowledged: dict[Key, list[int]], seconds_min: float = 1.0) -> list[Gap]:
    return [
        Gap(key, before, after)
        for key, times in acknowledged.items()
        for before, after in pairwise(times)
        if after - before >= seconds_min * SECOND
    ]
