from ottla.broker.machines.host import CommitTimeout, MachineHost
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.machine import Decision, Ticket
from ottla.model.types import Monotonic, Offset, WallTime


class Clock:
    def __init__(self) -> None:
        self.now_ms = 7

    def monotonic(self) -> Monotonic:
        return Monotonic(self.now_ms)

    counting_sleep = monotonic

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

    def append(self, records: list[str], _: bool) -> tuple[int, list[str]]:
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


class Shelves:
    """Puts words on shelves: "a1" is a word for shelf a, "a" asks how many are there."""

    def __init__(self) -> None:
        self.shelves: dict[str, list[str]] = {}
        self.timers: list[Monotonic] = []
        self.appended = 0

    def decide(self, ticket: Ticket, command: str, now: Monotonic) -> Decision[str, str]:
        shelf = command[0] if command != "all" else None
        records = [command] if shelf and len(command) > 1 else []
        count = sum(len(v) for k, v in self.shelves.items() if shelf in (None, k))
        decision = Decision(records, [(ticket, f"{command}: {count}")], scope=shelf)
        decision.on_append.append(self._count)
        return decision

    def _count(self) -> None:
        self.appended += 1

    def tick(self, now: Monotonic) -> Decision[str, str]:
        return Decision([f"t{self.timers.pop()}"], scope="t") if self.timers else Decision()

    def apply(self, offset: Offset, record: str) -> None:
        self.shelves.setdefault(record[0], []).append(record)

    def next_deadline(self) -> Monotonic | None:
        return min(self.timers, default=None)


class Shelving:
    def __init__(self, *, committed_end: int | None = None) -> None:
        self.log: list[str] = []
        self.heard: list[str | Refusal] = []
        self.shelves = Shelves()
        self.clock = Clock()
        self.host: MachineHost[str, str, str | Refusal] = MachineHost(
            self.shelves,
            self.append,
            self.clock,
            10,
            committed_end=committed_end,
            commit_timeout=CommitTimeout(5000, "late"),
        )

    def append(self, records: list[str], _: bool) -> tuple[int, list[str]]:
        if any("!" in record for record in records):
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
        base = 10 + len(self.log)
        self.log += records
        return base, records

    def submit(self, command: str) -> None:
        self.host.submit(command, self.heard.append)


def test_refused_records_cost_their_own_command_only() -> None:
    shelving = Shelving()
    shelving.submit("a1")
    shelving.submit("a!")
    (refusal,) = shelving.heard
    assert isinstance(refusal, Refusal)
    assert refusal.code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert shelving.log == ["a1"]
    assert shelving.shelves.shelves == {"a": ["a1"]}
    assert shelving.shelves.appended == 1, "soft state does not change either"
    shelving.host.committed(11)
    assert shelving.heard[1:] == ["a1: 0"]


def test_a_reply_waits_for_appends_in_its_own_scope_only() -> None:
    shelving = Shelving()
    shelving.submit("a1")
    shelving.submit("b")
    assert shelving.heard == ["b: 0"]
    shelving.submit("b1")
    shelving.submit("a")
    shelving.submit("all")
    assert shelving.heard == ["b: 0"]
    shelving.host.committed(11)
    assert shelving.heard == ["b: 0", "a1: 0", "a: 1"]
    shelving.host.committed(12)
    assert shelving.heard[3:] == ["b1: 0", "all: 2"]


def test_a_reply_of_any_scope_waits_for_what_was_loaded_and_is_not_committed() -> None:
    shelving = Shelving(committed_end=9)
    shelving.submit("a")
    shelving.submit("a!")
    assert [type(one) for one in shelving.heard] == [Refusal], "a refusal rests on nothing"
    shelving.host.committed(10)
    assert shelving.heard[1:] == ["a: 0"]


def test_a_reply_that_waits_too_long_is_late_and_not_given_again() -> None:
    shelving = Shelving()
    shelving.submit("a1")
    shelving.clock.now_ms += 2000
    shelving.submit("b1")
    assert shelving.host.late_at() == 5007
    shelving.clock.now_ms += 3000
    shelving.host.refuse_late()
    assert shelving.heard == ["late"]
    assert shelving.host.late_at() == 7007
    shelving.host.committed(12)
    assert shelving.heard == ["late", "b1: 0"]
    assert shelving.host.late_at() is None
    assert shelving.shelves.shelves == {"a": ["a1"], "b": ["b1"]}, "the records count"


def test_everything_that_is_due_is_decided_one_after_the_other() -> None:
    shelving = Shelving()
    shelving.shelves.timers = [Monotonic(8), Monotonic(5), Monotonic(6)]
    shelving.host.tick()
    assert shelving.log == ["t6", "t5"]
