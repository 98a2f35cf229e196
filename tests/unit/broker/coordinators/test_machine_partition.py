"""A machine over a partition: loaded from its log, appended to it, lost with it."""

import pytest

from ottla.broker.coordinators.machine_partition import MachinePartition
from ottla.model.errors import Damaged, ErrorCode, ProtocolError, Refusal
from ottla.model.machine import Decision, Marker, Producer, Verdict
from ottla.model.types import Monotonic, Offset, ProducerId
from ottla.records.batch import Batch
from ottla.records.record import CONTROL_KEY, Record, build_batch
from tests.answers import collect
from tests.unit.broker.replicating import Cluster, replicating
from tests.unit.broker.serving import World, serving


class Words:
    """A machine that keeps every word it is told, and says so; "later" only after a second.

    "count" keeps nothing and is told how many there are; "many" is a hundred words. "7: word" is
    one of producer 7's transaction, which "7: COMMIT" or "7: ABORT" ends.
    """

    def __init__(self) -> None:
        self.kept: list[tuple[Offset, str]] = []
        self.open: dict[Producer, list[tuple[Offset, str]]] = {}
        self.due: tuple[Monotonic, int] | None = None

    def decide(self, ticket: int, command: str, now: Monotonic) -> Decision[str, str]:
        if command == "later":
            self.due = (Monotonic(now + 1000), ticket)
            return Decision()
        if command == "count":
            return Decision([], [(ticket, str(len(self.kept)))])
        if command in ("many", "many together"):
            words = [f"{n:080}" for n in range(100)]
            return Decision(words, [(ticket, "kept many")], is_atomic=command != "many")
        number, colon, word = command.partition(": ")
        if not colon:
            return Decision([command], [(ticket, f"kept {command}")])
        producer = Producer(ProducerId(int(number)), 0)
        if word in Verdict.__members__:
            marker = Marker(producer, Verdict[word], coordinator_epoch=2)
            return Decision(replies=[(ticket, word)], marker=marker)
        return Decision([word], [(ticket, f"kept {word}")], producer=producer)

    def tick(self, now: Monotonic) -> Decision[str, str]:
        if self.due is None or self.due[0] > now:
            return Decision()
        (_, ticket), self.due = self.due, None
        return Decision(["late"], [(ticket, "kept late")])

    def apply(self, offset: Offset, record: str, producer: Producer | None) -> None:
        if record == "bad":
            raise ValueError("not a good word")
        kept = self.kept if producer is None else self.open.setdefault(producer, [])
        kept.append((offset, record))

    def ended(self, producer: Producer, verdict: Verdict) -> None:
        words = self.open.pop(producer, [])
        if verdict is Verdict.COMMIT:
            self.kept += words

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
    machine: Machine = MachinePartition(
        world.partition(), words, WordCodec(), world.broker, world.broker.partitions, hear
    )
    world.run(machine.load())
    machine.begin()
    return machine, words


def test_a_decision_is_answered_once_it_is_in_the_log_and_is_loaded_again() -> None:
    with serving() as world:
        world.topic("t")
        machine, words = load(world)
        replies: list[object] = []
        for word in ("one", "two"):
            collect(machine.submit(word), replies)
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
            machine.submit(f"{number} " + "x" * 1000)
        world.end_turn()
        _, loaded = load(world)
        assert loaded.kept == words.kept
        assert len(loaded.kept) == 300


def test_a_machine_wakes_at_its_deadline() -> None:
    with serving() as world:
        world.topic("t")
        machine, _ = load(world)
        replies: list[object] = []
        collect(machine.submit("later"), replies)
        world.pass_ms(999)
        assert replies == []
        world.pass_ms(2)
        world.end_turn()
        assert replies == ["kept late"]


def test_before_it_is_loaded_it_says_so() -> None:
    with serving() as world:
        world.topic("t")
        machine: Machine = MachinePartition(
            world.partition(),
            Words(),
            WordCodec(),
            world.broker,
            world.broker.partitions,
            lambda _: None,
        )
        assert machine.is_empty
        with pytest.raises(Refusal) as refused:
            machine.submit("word").result()
        assert refused.value.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_a_write_that_fails_loses_the_machine_and_tells_whoever_waits() -> None:
    with serving() as world:
        world.topic("t")
        lost: list[Machine] = []
        machine, _ = load(world, lost)
        replies: list[Refusal] = []
        collect(machine.submit("word"), replies)
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
        collect(machine.submit("word"), replies)
        machine.drop()
        world.end_turn()
        assert [reply.code for reply in replies] == [ErrorCode.NOT_COORDINATOR]


def transactional(word: str, producer_id: int, epoch: int = 0) -> Batch:
    record = Record(0, 1, word.encode(), b"")
    return Batch(
        build_batch([record], producer_id=producer_id, producer_epoch=epoch, base_sequence=0,
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


def test_transactions_written_live_are_loaded_alike_and_open_ones_end_after_loading() -> None:
    with serving() as world:
        world.topic("t")
        machine, words = load(world)
        replies: list[object] = []
        for word in ("1: aborted", "2: first", "plain", "3: open", "2: second", "1: ABORT"):
            collect(machine.submit(word), replies)
        collect(machine.submit("2: COMMIT"), replies)
        world.end_turn()
        assert replies[-2:] == ["ABORT", "COMMIT"]
        assert words.kept == [(2, "plain"), (1, "first"), (4, "second")]
        assert words.open == {Producer(ProducerId(3), 0): [(3, "open")]}
        written = batches_of(world)
        assert [batch.is_control for batch in written] == [False] * 5 + [True] * 2
        assert [batch.is_transactional for batch in written] == [True, True, False] + [True] * 4
        assert [batch.producer_id for batch in written] == [1, 2, -1, 3, 2, 1, 2]
        assert world.partition().log.producers.ongoing == {3: 3}
        world.restart()
        machine, loaded = load(world)
        assert (loaded.kept, loaded.open) == (words.kept, words.open)
        machine.submit("3: COMMIT")
        world.end_turn()
        assert loaded.kept == [*words.kept, (3, "open")]
        assert world.partition().log.producers.ongoing == {}


def test_a_producer_with_an_old_epoch_is_refused_and_nothing_is_written() -> None:
    with serving() as world:
        world.topic("t")
        fenced = transactional("word", 1, epoch=4)
        fenced.assign(0, 0)
        log = world.partition().log
        log.append([fenced], world.clock.wall())
        world.partition().high_watermark = log.end_offset
        lost: list[Machine] = []
        machine, _ = load(world, lost)
        assert code_of(machine, "1: word") == [ErrorCode.INVALID_PRODUCER_EPOCH]
        assert code_of(machine, "plain") == []
        world.end_turn()
        assert (len(batches_of(world)), lost) == (2, [])


def test_of_what_replaces_itself_only_the_last_is_loaded() -> None:
    with serving() as world:
        world.topic("t")
        machine, _ = load(world)
        said = ["again", "one", *["again"] * 700, *(f"word {n}" for n in range(700)), "again"]
        for word in said:
            machine.submit(word)
        world.end_turn()
        world.restart()
        _, words = load(world)
        kept = [word for _, word in words.kept]
        assert kept == ["again", "one", "again", *said[702:]]
        assert [offset for offset, _ in words.kept] == sorted(offset for offset, _ in words.kept)


def code_of(machine: Machine, word: str) -> list[ErrorCode]:
    """The code of the refusal that a word gets at once; nothing if it is taken."""
    replies: list[Refusal] = []
    collect(machine.submit(word), replies)
    return [reply.code for reply in replies]


def test_a_word_that_cannot_be_encoded_costs_nothing_but_itself() -> None:
    with serving() as world:
        world.topic("t")
        lost: list[Machine] = []
        machine, words = load(world, lost)
        assert code_of(machine, "\ud800") == [ErrorCode.UNKNOWN_SERVER_ERROR]
        assert code_of(machine, "good") == []
        world.end_turn()
        assert (words.kept, lost) == ([(0, "good")], [])


@pytest.mark.parametrize("config", ["max.message.bytes", "internal.segment.bytes"])
def test_a_decision_larger_than_the_log_takes_costs_nothing_but_itself(config: str) -> None:
    with serving() as world:
        world.topic("t")
        lost: list[Machine] = []
        machine, words = load(world, lost)
        world.configure("t", config, 2000)
        assert code_of(machine, "x" * 2000) == [ErrorCode.UNKNOWN_SERVER_ERROR]
        assert code_of(machine, "many together") == [ErrorCode.UNKNOWN_SERVER_ERROR]
        assert code_of(machine, "x" * 1000) == []
        world.end_turn()
        assert (len(words.kept), lost) == (1, [])


def test_a_decision_that_is_too_large_is_not_encoded_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving() as world:
        world.topic("t", max_message_bytes=200)
        machine, _ = load(world)
        encoded: list[str] = []
        encode = WordCodec.encode
        monkeypatch.setattr(
            WordCodec, "encode", lambda self, word: (encoded.append(word), encode(self, word))[1]
        )
        assert code_of(machine, "many together") == [ErrorCode.UNKNOWN_SERVER_ERROR]
        assert len(b"".join(word.encode() for word in encoded[:-1])) <= 200


def test_a_decision_that_is_not_atomic_is_split_into_batches_that_the_log_takes() -> None:
    with serving() as world:
        world.topic("t", max_message_bytes=2000)
        machine, words = load(world)
        replies: list[object] = []
        collect(machine.submit("many"), replies)
        world.end_turn()
        assert replies == ["kept many"]
        assert [offset for offset, _ in words.kept] == list(range(100))
        _, loaded = load(world)
        assert loaded.kept == words.kept
        sizes = [batch.size for batch in batches_of(world)]
        assert len(sizes) > 2
        assert max(sizes) <= 2000


def batches_of(world: World) -> list[Batch]:
    data, position, batches = world.log_bytes(), 0, []
    while position < len(data):
        batches.append(Batch.parse(data, position))
        position += batches[-1].size
    return batches


def test_a_full_disk_refuses_records_and_keeps_the_machine() -> None:
    with serving() as world:
        world.topic("t")
        lost: list[Machine] = []
        machine, words = load(world, lost)
        replies: list[object] = []
        collect(machine.submit("later"), replies)
        world.broker.directories.of(world.partition().log).is_full = True
        assert code_of(machine, "word") == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
        with pytest.raises(Refusal) as refused:
            machine.admit([])
        assert refused.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        world.broker.directories.check_space = lambda: None  # type: ignore[method-assign]
        world.pass_ms(5000)
        assert (words.kept, replies) == ([], []), "no timer fires that could not write"
        world.broker.directories.of(world.partition().log).is_full = False
        world.pass_ms(600)
        world.end_turn()
        assert replies == ["kept late"]
        assert lost == []


def test_everything_that_is_due_is_decided_before_the_next_command() -> None:
    with serving() as world:
        world.topic("t")
        machine, words = load(world)
        machine.submit("later")
        world.loop.now_ns += 2_000_000_000  # The loop was busy: no timer has fired yet.
        machine.submit("word")
        assert [word for _, word in words.kept] == ["late", "word"]


def test_a_batch_that_cannot_be_read_is_damage_and_not_the_end_of_the_log() -> None:
    with serving() as world:
        world.topic("t")
        machine, _ = load(world)
        for word in ("one", "two", "three"):
            machine.submit(word)
            world.end_turn()
        length = batches_of(world)[0].size + 8  # Of the second batch: more than there is.
        world.disk.flip_bit(f"{world.partition().log.directory}/{0:020}.log", length, bit=6)
        fresh: Machine = MachinePartition(
            world.partition(),
            Words(),
            WordCodec(),
            world.broker,
            world.broker.partitions,
            lambda _: None,
        )
        with pytest.raises(Damaged):
            world.run(fresh.load())


def replicated(cluster: Cluster, lost: list[Machine] | None = None) -> tuple[Machine, Words]:
    """A machine over partition 0 of `t`, at its leader."""
    leader, words = cluster.leader(), Words()
    hear = (lost if lost is not None else []).append
    machine: Machine = MachinePartition(
        leader.partition(), words, WordCodec(), leader.broker, leader.broker.partitions, hear
    )
    cluster.run(machine.load())
    machine.begin()
    return machine, words


def test_a_loaded_machine_answers_nothing_that_is_not_committed() -> None:
    with replicating() as cluster:
        cluster.topic("t", min_insync_replicas="2")
        followers = cluster.followers()
        old, _ = replicated(cluster)
        for follower in followers:
            follower.kill()
        old.submit("uncommitted")
        cluster.leader().broker.partitions.flush()
        machine, words = replicated(cluster)
        replies: list[object] = []
        collect(machine.submit("count"), replies)
        cluster.pass_ms(1000)
        assert [word for _, word in words.kept] == ["uncommitted"]
        assert replies == []
        for follower in followers:
            follower.start()
        cluster.until(lambda: cluster.leader().partition().high_watermark == 1)
        assert replies == ["1"]


def test_a_log_under_min_isr_refuses_records_at_once_and_answers_all_else() -> None:
    with replicating() as cluster:
        cluster.topic("t", min_insync_replicas="2")
        lost: list[Machine] = []
        machine, words = replicated(cluster, lost)
        for follower in cluster.followers():
            follower.kill()
            cluster.notice_death(follower)
        assert code_of(machine, "word") == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
        replies: list[object] = []
        collect(machine.submit("count"), replies)
        assert replies == ["0"]
        assert (words.kept, lost) == ([], [])


def test_an_append_that_is_not_committed_in_time_is_refused_and_stays() -> None:
    with replicating() as cluster:
        cluster.topic("t", min_insync_replicas="2")
        lost: list[Machine] = []
        followers = cluster.followers()
        machine, words = replicated(cluster, lost)
        for follower in followers:
            follower.kill()
        replies: list[object] = []
        collect(machine.submit("word"), replies)
        cluster.pass_ms(4900)
        assert replies == []
        cluster.pass_ms(200)
        (late,) = replies
        assert isinstance(late, Refusal)
        assert late.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        for follower in followers:
            cluster.notice_death(follower)
            follower.start()
        cluster.until(lambda: cluster.leader().partition().high_watermark == 1)
        assert (words.kept, lost, len(replies)) == ([(0, "word")], [], 1)
        collect(machine.submit("count"), replies)
        assert replies[1:] == ["1"]
