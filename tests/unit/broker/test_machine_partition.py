"""A machine over a partition: loaded from its log, appended to it, lost with it."""

import pytest

from ottla.broker.machine_partition import MachinePartition
from ottla.model.errors import ErrorCode, ProtocolError, Refusal
from ottla.model.machine import Decision
from ottla.model.types import Monotonic, Offset
from ottla.records.batch import Batch
from ottla.records.record import CONTROL_KEY, Record, build_batch
from tests.unit.broker.serving import World, serving


class Words:
    """A machine that keeps every word it is told, and says so; "later" only after a second."""

    def __init__(self) -> None:
        self.kept: list[tuple[Offset, str]] = []
        self.due: tuple[Monotonic, int] | None = None

    def decide(self, ticket: int, command: str, now: Monotonic) -> Decision[str, str]:
        if command == "later":
            self.due = (Monotonic(now + 1000), ticket)
            return Decision()
        return Decision([command], [(ticket, f"kept {command}")])

    def tick(self, now: Monotonic) -> Decision[str, str]:
        if self.due is None or self.due[0] > now:
            return Decision()
        (_, ticket), self.due = self.due, None
        return Decision(["late"], [(ticket, "kept late")])

    def apply(self, offset: Offset, record: str) -> None:
        if record == "bad":
            raise ValueError("not a good word")
        self.kept.append((offset, record))

    def next_deadline(self) -> Monotonic | None:
        return self.due[0] if self.due else None


class WordCodec:
    """Of words that begin with `again` only the last one counts."""

    replaced = (b"again",)

    def encode(self, record: str) -> tuple[bytes, bytes | None]:
        return record.encode(), b""

    def decode(self, key: bytes, value: bytes | None) -> str | None:
        if b"\xff" in key:
            raise ProtocolError("not a word")
        return None if value is None else key.decode()


Machine = MachinePartition[str, str]


def load(world: World, lost: list[Machine] | None = None) -> tuple[Machine, Words]:
    words = Words()
    hear = (lost if lost is not None else []).append
    machine: Machine = MachinePartition(world.partition(), words, WordCodec(), world.broker, hear)
    world.run(machine.load())
    machine.begin()
    return machine, words


def test_a_decision_is_answered_once_it_is_in_the_log_and_is_loaded_again() -> None:
    with serving() as world:
        world.topic("t")
        machine, words = load(world)
        replies: list[object] = []
        for word in ("one", "two"):
            machine.submit(word, replies.append)
        assert replies == [], "nothing is in the file yet"
        assert [word for _, word in words.kept] == ["one", "two"], "but the next decides on it"
        world.end_turn()
        assert replies == ["kept one", "kept two"]
        world.restart()
        _, loaded = load(world)
        assert loaded.kept == words.kept == [(0, "one"), (1, "two")]


def test_many_slices_are_loaded_in_order() -> None:
    with serving() as world:
        world.topic("t")
        machine, words = load(world)
        for number in range(300):
            machine.submit(f"{number} " + "x" * 1000, lambda _: None)
        world.end_turn()
        _, loaded = load(world)
        assert loaded.kept == words.kept
        assert len(loaded.kept) == 300


def test_a_machine_wakes_at_its_deadline() -> None:
    with serving() as world:
        world.topic("t")
        machine, _ = load(world)
        replies: list[object] = []
        machine.submit("later", replies.append)
        world.pass_ms(999)
        assert replies == []
        world.pass_ms(2)
        world.end_turn()
        assert replies == ["kept late"]


def test_before_it_is_loaded_it_says_so() -> None:
    with serving() as world:
        world.topic("t")
        machine: Machine = MachinePartition(
            world.partition(), Words(), WordCodec(), world.broker, lambda _: None
        )
        assert machine.is_empty
        with pytest.raises(Refusal) as refused:
            machine.submit("word", lambda _: None)
        assert refused.value.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_a_write_that_fails_loses_the_machine_and_tells_whoever_waits() -> None:
    with serving() as world:
        world.topic("t")
        lost: list[Machine] = []
        machine, _ = load(world, lost)
        replies: list[Refusal] = []
        machine.submit("word", replies.append)
        world.disk.capacity_bytes = 0
        world.end_turn()
        assert [reply.code for reply in replies] == [ErrorCode.NOT_COORDINATOR]
        assert lost == [machine]
        assert not machine.is_loaded
        world.disk.capacity_bytes = 1 << 40
        _, loaded = load(world)
        assert loaded.kept == []


def test_a_dropped_machine_answers_nobody_twice() -> None:
    with serving() as world:
        world.topic("t")
        machine, _ = load(world)
        replies: list[Refusal] = []
        machine.submit("word", replies.append)
        machine.drop()
        world.end_turn()
        assert [reply.code for reply in replies] == [ErrorCode.NOT_COORDINATOR]


def transactional(word: str, producer_id: int) -> Batch:
    record = Record(0, 1, word.encode(), b"")
    return Batch(
        build_batch([record], producer_id=producer_id, producer_epoch=0, base_sequence=0,
                    is_transactional=True)
    )  # fmt: skip


def marker(kind: int, producer_id: int) -> Batch:
    record = Record(0, 1, CONTROL_KEY.pack(0, kind), bytes(6))
    return Batch(
        build_batch([record], producer_id=producer_id, producer_epoch=0, is_transactional=True,
                    is_control=True)
    )  # fmt: skip


def test_what_makes_no_sense_is_passed_over_and_told(caplog: pytest.LogCaptureFixture) -> None:
    with serving() as world:
        world.topic("t")
        broken = bytearray(build_batch([Record(0, 1, b"cut", b"value")]))
        broken[-6:] = b"\xff" * 6
        batches = [
            Batch(build_batch([Record(0, 1, b"one", b"")])),
            Batch(broken),
            Batch(build_batch([Record(0, 1, b"\xff\xff", b""), Record(1, 1, b"bad", b"")])),
            marker(1, 9),
            Batch(build_batch([Record(0, 1, b"two", b"")])),
        ]
        offset = 0
        for batch in batches:
            batch.assign(offset, 0)
            offset = batch.next_offset
        log = world.partition().log
        log.append(batches, world.clock.wall())
        world.partition().high_watermark = log.end_offset
        _, words = load(world)
        assert words.kept == [(0, "one"), (5, "two")]
        assert "t-0 at offset 1" in caplog.text
        assert "t-0 at offset 2" in caplog.text
        assert "t-0 at offset 3" in caplog.text


def test_of_transactions_only_the_committed_are_loaded() -> None:
    with serving() as world:
        world.topic("t")
        log = world.partition().log
        batches = [
            transactional("aborted", 1),
            transactional("committed", 2),
            transactional("open", 3),
            marker(0, 1),
            marker(1, 2),
        ]
        for offset, batch in enumerate(batches):
            batch.assign(offset, 0)
        log.append(batches, world.clock.wall())
        world.partition().high_watermark = log.end_offset
        _, words = load(world)
        assert words.kept == [(1, "committed")]


def test_of_what_replaces_itself_only_the_last_is_loaded() -> None:
    with serving() as world:
        world.topic("t")
        machine, _ = load(world)
        said = ["again", "one", *["again"] * 700, *(f"word {n}" for n in range(700)), "again"]
        for word in said:
            machine.submit(word, lambda _: None)
        world.end_turn()
        world.restart()
        _, words = load(world)
        kept = [word for _, word in words.kept]
        assert kept == ["again", "one", "again", *said[702:]]
        assert [offset for offset, _ in words.kept] == sorted(offset for offset, _ in words.kept)
