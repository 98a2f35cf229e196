import pytest

from ottla.broker.controller import metadata_log_reader
from ottla.model.errors import Damaged
from tests.unit.broker.driving import formatted
from tests.unit.broker.metadata_logs import TOPICS, loaded, write


def test_records_are_read_between_two_offsets_over_many_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metadata_log_reader, "READ_BYTES", 1)
    node = formatted()
    log, _ = loaded(node)
    write(node, log, 1, *TOPICS)
    assert [*log.records(0, 3)] == list(enumerate(TOPICS))
    assert [*log.records(1, 2)] == [(1, TOPICS[1])]
    assert [*log.records(3, 3)] == []


def test_records_of_the_log_follow_those_of_the_snapshot() -> None:
    node = formatted()
    log, records = loaded(node)
    assert records == []
    write(node, log, 1, *TOPICS)
    log.close()
    again, records = loaded(node)
    assert records == TOPICS
    assert [r for _, r in again.records(1, 2)] == TOPICS[1:2]


def test_batches_of_the_leader_have_to_follow_our_own() -> None:
    one, other = formatted(), formatted()
    source, _ = loaded(one)
    write(one, source, 3, *TOPICS)
    target, _ = loaded(other)
    for batch in target.fetched(source.read(0, 1 << 20)):
        target.append(batch, other.clock.wall())
    assert target.end_offset == 3
    assert target.read(1, 1) == source.read(1, 1)  # At least one, whatever the limit.
    with pytest.raises(Damaged, match="cannot follow"):
        next(iter(target.fetched(source.read(1, 1))))
    with pytest.raises(Damaged, match="checksum"):
        next(iter(target.fetched(source.read(0, 1)[:-1] + b"x")))
