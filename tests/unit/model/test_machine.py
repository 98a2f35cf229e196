from ottla.model.machine import Decision, Producer, StateMachine, Ticket, Verdict
from ottla.model.types import Monotonic, Offset


class Counter:
    """The smallest state machine: a counter."""

    def __init__(self) -> None:
        self.total = 0

    def decide(self, ticket: Ticket, command: int, now: Monotonic) -> Decision[int, int]:
        return Decision([command], [(ticket, self.total + command)])

    def tick(self, now: Monotonic) -> Decision[int, int]:
        return Decision()

    def apply(self, offset: Offset, record: int, producer: Producer | None) -> None:
        self.total += record

    def ended(self, producer: Producer, verdict: Verdict) -> None:
        pass

    def next_deadline(self) -> Monotonic | None:
        return None


def test_decide_does_not_change_state_and_apply_does() -> None:
    counter = Counter()
    machine: StateMachine[int, int, int] = counter
    decision = machine.decide(1, 5, Monotonic(0))
    assert counter.total == 0
    for offset, record in enumerate(decision.records):
        machine.apply(offset, record, None)
    assert counter.total == 5
    assert decision.replies == [(1, 5)]


def test_decisions_do_not_share_mutable_fields() -> None:
    first: Decision[int, int] = Decision()
    first.records.append(1)
    assert Decision().records == []
