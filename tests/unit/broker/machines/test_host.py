from ottla.broker.machines.host import CommitTimeout, MachineHost
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.machine import Decision, Marker, Producer, Ticket, Verdict
from ottla.model.types import Monotonic, Offset, ProducerId, WallTime
from tests.answers import collect

LATE = Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, "late")


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

    def apply(self, offset: Offset, record: str, producer: Producer | None) -> None:
        assert offset == 10 + len(self.items)
        self.items.append(record)

    def ended(self, producer: Producer, verdict: Verdict) -> None:
        raise AssertionError("a queue knows no transactions")

    def next_deadline(self) -> Monotonic | None:
        return None


class Hosting:
    def __init__(self) -> None:
        self.log: list[str] = []
        self.heard: list[str | Refusal] = []
        self.queue = Queue()
        self.host: MachineHost[str, str, str] = MachineHost(self.queue, self.append, Clock(), 10)

    def append(self, decision: Decision[str, str]) -> tuple[int, list[str]]:
        base = 10 + len(self.log)
        self.log += decision.records
        return base, decision.records

    def submit(self, command: str) -> None:
        collect(self.host.submit(command), self.heard)


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
    lost = Refusal(ErrorCode.NOT_COORDINATOR)
    hosting.host.drop(lost)
    assert hosting.heard == [lost, lost]
    hosting.host.committed(99)
    assert hosting.heard == [lost, lost]


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

    def apply(self, offset: Offset, record: str, producer: Producer | None) -> None:
        self.shelves.setdefault(record[0], []).append(record)

    def ended(self, producer: Producer, verdict: Verdict) -> None:
        raise AssertionError("shelves know no transactions")

    def next_deadline(self) -> Monotonic | None:
        return min(self.timers, default=None)


class Shelving:
    def __init__(self, *, committed_end: int | None = None) -> None:
        self.log: list[str] = []
        self.heard: list[str | Refusal] = []
        self.shelves = Shelves()
        self.clock = Clock()
        self.host: MachineHost[str, str, str] = MachineHost(
            self.shelves,
            self.append,
            self.clock,
            10,
            committed_end=committed_end,
            commit_timeout=CommitTimeout(5000, LATE),
        )

    def append(self, decision: Decision[str, str]) -> tuple[int, list[str]]:
        if any("!" in record for record in decision.records):
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
        base = 10 + len(self.log)
        self.log += decision.records
        return base, decision.records

    def submit(self, command: str) -> None:
        collect(self.host.submit(command), self.heard)


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
    assert shelving.heard == [LATE]
    assert shelving.host.late_at() == 7007
    shelving.host.committed(12)
    assert shelving.heard == [LATE, "b1: 0"]
    assert shelving.host.late_at() is None
    assert shelving.shelves.shelves == {"a": ["a1"], "b": ["b1"]}, "the records count"


def test_everything_that_is_due_is_decided_one_after_the_other() -> None:
    shelving = Shelving()
    shelving.shelves.timers = [Monotonic(8), Monotonic(5), Monotonic(6)]
    shelving.host.tick()
    assert shelving.log == ["t6", "t5"]


class Ledger:
    """Books in transactions: "7 book" of producer 7, "7 commit", "7 abort"; "send" has an effect.

    What comes of that is the command "sent", and is booked too.
    """

    def __init__(self) -> None:
        self.books: list[tuple[Offset, str]] = []
        self.open: dict[Producer, list[tuple[Offset, str]]] = {}

    def decide(self, ticket: Ticket, command: str, now: Monotonic) -> Decision[str, str]:
        replies: list[tuple[Ticket, str | Refusal]] = [(ticket, f"did {command}")]
        if not command[0].isdigit():
            return Decision([command], replies, [command] if command.startswith("send") else [])
        number, what = command.split()
        producer = Producer(ProducerId(int(number)), 3)
        if what in ("commit", "abort"):
            marker = Marker(producer, Verdict[what.upper()], coordinator_epoch=5)
            return Decision(replies=replies, marker=marker)
        return Decision([what], replies, producer=producer)

    def tick(self, now: Monotonic) -> Decision[str, str]:
        return Decision()

    def apply(self, offset: Offset, record: str, producer: Producer | None) -> None:
        books = self.books if producer is None else self.open.setdefault(producer, [])
        books.append((offset, record))

    def ended(self, producer: Producer, verdict: Verdict) -> None:
        books = self.open.pop(producer, [])
        if verdict is Verdict.COMMIT:
            self.books += books

    def next_deadline(self) -> Monotonic | None:
        return None


class Keeping:
    def __init__(self) -> None:
        self.end = 10
        self.is_full = False
        self.heard: list[str | Refusal] = []
        self.effects: list[str] = []
        self.ledger = Ledger()
        self.host: MachineHost[str, str, str] = MachineHost(
            self.ledger, self.append, Clock(), 10, perform=self.perform
        )

    def append(self, decision: Decision[str, str]) -> tuple[int, list[str]]:
        if self.is_full:
            raise Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        base = self.end
        self.end += len(decision.records) + (decision.marker is not None)
        return base, decision.records

    def perform(self, effect: str) -> None:
        self.effects.append(effect)
        self.submit(effect.replace("send", "sent"))

    def submit(self, command: str) -> None:
        collect(self.host.submit(command), self.heard)


def test_effects_are_released_in_order_once_their_records_are_committed() -> None:
    keeping = Keeping()
    keeping.submit("send a")
    keeping.submit("send b")
    assert keeping.effects == []
    keeping.host.committed(11)
    assert keeping.effects == ["send a"]
    assert keeping.heard == ["did send a"]
    keeping.host.committed(12)
    assert keeping.effects == ["send a", "send b"]


def test_what_comes_of_an_effect_is_decided_as_a_command() -> None:
    keeping = Keeping()
    keeping.submit("send a")
    keeping.host.committed(11)
    assert keeping.ledger.books == [(10, "send a"), (11, "sent a")]
    assert keeping.heard == ["did send a"]
    keeping.host.committed(12)
    assert keeping.heard == ["did send a", "did sent a"]


def test_effects_are_lost_with_the_machine_and_with_refused_records() -> None:
    keeping = Keeping()
    keeping.is_full = True
    keeping.submit("send a")
    keeping.is_full = False
    keeping.submit("send b")
    keeping.host.drop(Refusal(ErrorCode.NOT_COORDINATOR))
    keeping.host.committed(99)
    assert keeping.effects == []


def test_records_of_a_transaction_are_applied_with_their_producer_until_its_marker() -> None:
    keeping = Keeping()
    for command in ("7 one", "8 other", "plain", "7 two", "7 commit", "8 abort"):
        keeping.submit(command)
    assert keeping.ledger.open == {}
    assert keeping.ledger.books == [(12, "plain"), (10, "one"), (13, "two")]
    assert keeping.heard == []
    keeping.host.committed(15)
    assert keeping.heard[-1] == "did 7 commit"
    keeping.host.committed(16)
    assert keeping.heard[-1] == "did 8 abort"
    assert keeping.end == 16


def test_a_refused_marker_ends_no_transaction() -> None:
    keeping = Keeping()
    keeping.submit("7 one")
    keeping.is_full = True
    keeping.submit("7 commit")
    assert [type(one) for one in keeping.heard] == [Refusal]
    assert keeping.ledger.books == []
    keeping.is_full = False
    keeping.submit("7 commit")
    assert keeping.ledger.books == [(10, "one")]
