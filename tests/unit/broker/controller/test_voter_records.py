import pytest

from ottla.model.errors import FormatRefused
from ottla.model.types import ZERO_UUID
from ottla.protocol.control_records import KRaftVersionRecord
from ottla.quorum.voters import Address, Voter, Voters
from tests.unit.broker.driving import ONE, formatted
from tests.unit.broker.metadata_logs import TOPICS, loaded, write, write_controls

OTHERS = Voters.of([Voter(ONE, ZERO_UUID, {"CONTROLLER": Address("h", 9093)})])


def test_a_kraft_version_above_ours_is_refused_by_name() -> None:
    node = formatted()
    log, _ = loaded(node)
    with pytest.raises(FormatRefused, match=r"kraft.version 2"):
        write_controls(node, log, 1, KRaftVersionRecord(kraft_version=2))
    log.close()
    with pytest.raises(FormatRefused, match=r"kraft.version 2"):
        loaded(node)


def test_a_truncation_takes_voters_and_epochs_back() -> None:
    node = formatted()
    log, _ = loaded(node)
    before = log.history.voters
    write(node, log, 1, TOPICS[0])
    write_controls(node, log, 2, OTHERS.to_record())
    assert log.history.voters == OTHERS
    log.truncate_to(1)
    assert (log.history.voters, log.last_epoch, log.end_offset) == (before, 1, 1)
    log.close()
    assert loaded(node)[1] == TOPICS[:1]
