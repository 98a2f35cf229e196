"""A history that is also kept as operations, for the checker that knows only what clients saw."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ottla.model.types import Offset, TopicPartition
from ottla.simulation.history.history import UNKNOWN_OFFSET, History, Sent, Violation
from ottla.simulation.history.history_checker import check
from ottla.simulation.history.operations import Kind, Operation, Outcome, Poll, Send

NO_READER = ""


@dataclass(slots=True)
class RecordedHistory(History):
    now_ns: Callable[[], int] = lambda: 0
    # When each value was sent, and acknowledged; who read what where, and when.
    sent_ns: dict[bytes, int] = field(default_factory=dict)
    acknowledged_ns: dict[bytes, int] = field(default_factory=dict)
    polls: list[tuple[int, str, TopicPartition, Offset, bytes]] = field(default_factory=list)

    def sending(self, value: bytes, sent: Sent) -> None:
        History.sending(self, value, sent)
        self.sent_ns[value] = self.now_ns()

    def acknowledged(self, value: bytes, offset: Offset) -> None:
        History.acknowledged(self, value, offset)
        self.acknowledged_ns[value] = self.now_ns()

    def read(
        self, topic_partition: TopicPartition, offset: Offset, value: bytes, reader: str = NO_READER
    ) -> None:
        History.read(self, topic_partition, offset, value)
        if reader:
            self.polls.append((self.now_ns(), reader, topic_partition, offset, value))

    def forget(self, topic: str) -> None:
        History.forget(self, topic)
        self.polls = [poll for poll in self.polls if poll[2].topic != topic]

    def forget_unsynced(self) -> None:
        History.forget_unsynced(self)
        self.polls.clear()

    def judge(self, logs: dict[TopicPartition, list[tuple[Offset, bytes]]]) -> None:
        """`logs` is all that is there in the end. Violation if no correct cluster did this.

        Values of producers that may send twice, or out of order, are left to `check_final`.
        """
        report = check(self._operations(logs))
        if report.anomalies:
            raise Violation(f"the clients' history: {report}")

    def _operations(
        self, logs: dict[TopicPartition, list[tuple[Offset, bytes]]]
    ) -> Iterator[Operation]:
        done: list[tuple[int, int, str, Outcome, Kind, Send | Poll]] = []
        judged = {
            value: sent
            for value, sent in self.sent.items()
            if sent.guarantee.is_ordered and sent.topic_partition not in self.uncertain
        }
        for value, sent in judged.items():
            ended = self.acknowledged_ns.get(value) if sent.is_acknowledged else None
            offset = None if sent.offset == UNKNOWN_OFFSET else sent.offset
            if self._is_trimmed(sent.topic_partition, offset):
                if offset is not None:
                    continue
                ended = None  # Nobody knows where it was: it may be gone.
            outcome = Outcome.INFO if ended is None else Outcome.OK
            step = Send(str(sent.topic_partition), _text(value), offset)
            began = self.sent_ns[value]
            done.append((began, ended or self.now_ns(), sent.producer, outcome, Kind.SEND, step))
        for at, reader, place, offset, value in self.polls:
            if value not in judged or self._is_trimmed(place, offset):
                continue
            poll = Poll({str(place): [(offset, _text(value))]})
            done.append((at, at, reader, Outcome.OK, Kind.POLL, poll))
        done.sort(key=lambda operation: operation[0])
        now = self.now_ns()
        for place, records in logs.items():
            left = [r for r in records if r[1] in judged and not self._is_trimmed(place, r[0])]
            poll = Poll({str(place): [(offset, _text(value)) for offset, value in left]})
            done.append((now, now, "auditor", Outcome.OK, Kind.DRAIN, poll))
        for index, (began, end, process, outcome, kind, what) in enumerate(done):
            yield Operation(index, process, outcome, kind, began, end, (what,))

    def _is_trimmed(self, place: TopicPartition, offset: Offset | None) -> bool:
        """Whether somebody asked for it to be deleted: then it may be there or not."""
        start_max = self.trims[place].start_max
        return start_max > 0 if offset is None else offset < start_max


def _text(value: bytes) -> str:
    """Who sent it, and its number: the rest is padding."""
    return value.rpartition(b"/")[0].decode()
