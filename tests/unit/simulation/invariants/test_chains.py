from collections.abc import Iterator

from ottla.records.batch import Batch
from ottla.simulation.invariants.chains import Chain
from tests.unit.storage.making import make_batch


class FakeLog:
    """Batches of one record each, in some leader epoch."""

    def __init__(self, *epochs: int) -> None:
        self.batches = [self._batch(offset, epoch) for offset, epoch in enumerate(epochs)]
        self.reads = 0

    def between(self, start: int, end: int) -> Iterator[Batch]:
        self.reads += 1
        return iter(self.batches[start:end])

    def become(self, *epochs: int) -> None:
        self.batches = FakeLog(*epochs).batches

    @property
    def end(self) -> int:
        return len(self.batches)

    @staticmethod
    def _batch(offset: int, epoch: int) -> Batch:
        batch = make_batch(size=1 + epoch, producer_id=4, sequence=offset)
        batch.assign(offset, epoch)
        return Batch(bytes(batch.data))


def followed(log: FakeLog) -> Chain:
    chain = Chain()
    chain.follow(log.end, log.between)
    return chain


def test_logs_that_are_alike_have_the_same_marks_and_others_have_not() -> None:
    one, other = followed(FakeLog(0, 0, 1)), followed(FakeLog(0, 1, 1))
    assert one.mark_at(2) == followed(FakeLog(0, 0, 1)).mark_at(2)
    assert one.mark_at(0) == other.mark_at(0)
    assert one.mark_at(2) != other.mark_at(2), "the same last batch, after something else"
    assert one.mark_at(7) is None
    assert one.links[1].batch == (4, 0, 1)


def test_only_what_is_new_is_followed() -> None:
    log = FakeLog(0, 0)
    chain = followed(log)
    log.become(0, 0, 1)
    assert [link.last_offset for link in chain.follow(log.end, log.between)] == [2]
    assert chain.end == 3


def test_a_log_that_was_cut_and_has_grown_again_is_noticed() -> None:
    log = FakeLog(0, 0, 0)
    chain = followed(log)
    log.become(0, 2, 2, 2)
    chain.follow(log.end, log.between)
    assert chain.links == followed(FakeLog(0, 2, 2, 2)).links
    log.become(0)
    chain.follow(log.end, log.between)
    assert chain.end == 1


def test_a_log_that_begins_later_takes_over_the_mark_of_what_was_before() -> None:
    whole = FakeLog(0, 0, 1)
    mark = followed(whole).mark_at(1)
    assert mark is not None
    late = Chain(2, mark)
    late.follow(3, whole.between)
    assert late.mark_at(2) == followed(whole).mark_at(2)
