from ottla.broker.machine_host import MachineHost
from ottla.model.machine import Decision, Ticket
from ottla.model.types import Monotonic, Offset, WallTime


class Clock:
    def monotonic(self) -> Monotonic:
        return Monotonic(7)

    def wall(self) -> WallTime:
        return WallTime(7)


class Queue:
    """Answers "put" with its place, "get" when there is something, and ticks put "tick"."""

    def __init__(self) -> None:
        self.items: list[str] = []
        self.getting: list[Ticket] = []

    def decide(self, ticket: Ticket, command: str, now: Monotonic) -> Decision[str, str]:
        assert now == 7
        if command == "length":
            return Decision([], [(ticket, str(len(self.items)))])
        if command == "get":
            self.getting.append(ticket)
            return Decision()
        replies = [(getting, command) for getting in self.getting]
        self.getting.clear()
        return Decision([command], [(ticket, f"at {len(self.items)}"), *replies])

    def tick(self, now: Monotonic) -> Decision[str, str]:
        return Decision(["tick"])

    def apply(self, offset: Offset, record: str) -> None:
        assert offset == 10 + len(self.items)
        self.items.append(record)

    def next_deadline(self) -> Monotonic | None:
        return None


class Hosting:
    def __init__(self) -> None:
        self.log: list[str] = []
        self.heard: list[str] = []
        self.queue = Queue()
        self.host: MachineHost[str, str, str] = MachineHost(self.queue, self.append, Clock(), 10)

    def append(self, records: list[str]) -> tuple[int, list[str]]:
        base = 10 + len(self.log)
        self.log += records
        return base, records

    def submit(self, command: str) -> None:
        self.host.submit(command, self.heard.append)


def test_records_are_applied_at_once_and_answered_when_committed() -> None:
    hosting = Hosting()
    hosting.submit("a")
    assert hosting.queue.items == ["a"]
    assert hosting.heard == []
    hosting.host.committed(11)
    assert hosting.heard == ["at 0"]


def test_the_next_command_decides_on_what_the_last_one_wrote() -> None:
    hosting = Hosting()
    hosting.submit("a")
    hosting.submit("b")
    hosting.host.committed(11)
    assert hosting.heard == ["at 0"]
    hosting.host.committed(12)
    assert hosting.heard == ["at 0", "at 1"]


def test_an_answer_that_wrote_nothing_waits_for_what_it_saw() -> None:
    hosting = Hosting()
    hosting.submit("length")
    assert hosting.heard == ["0"]
    hosting.submit("a")
    hosting.submit("length")
    assert hosting.heard == ["0"]
    hosting.host.committed(11)
    assert hosting.heard == ["0", "at 0", "1"]


def test_a_later_decision_may_answer_an_earlier_command() -> None:
    hosting = Hosting()
    hosting.submit("get")
    hosting.submit("a")
    hosting.host.committed(11)
    assert hosting.heard == ["at 0", "a"]


def test_time_may_bring_records_too() -> None:
    hosting = Hosting()
    hosting.host.tick()
    assert hosting.log == ["tick"]


def test_when_the_machine_is_lost_everyone_who_waits_is_told() -> None:
    hosting = Hosting()
    hosting.submit("get")
    hosting.submit("a")
    hosting.host.drop("lost")
    assert hosting.heard == ["lost", "lost"]
    hosting.host.committed(99)
    assert hosting.heard == ["lost", "lost"]
