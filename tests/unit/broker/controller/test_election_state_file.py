import pytest

from ottla.broker.controller.election_state_file import ElectionStateFile
from ottla.broker.controller.metadata_log import MetadataLog
from ottla.model.errors import Damaged
from ottla.quorum.election_state import ElectionState
from tests.unit.broker.driving import LOG, ONE, formatted, run


def test_a_written_state_is_read_again_after_a_power_loss() -> None:
    node = formatted()
    file = MetadataLog(node.env, node.settings).election_state
    assert file.state == ElectionState()
    run(file.write(ElectionState(3, voted=ONE)))
    assert file.state == ElectionState(3, voted=ONE)
    node.disk.cut_power()
    again = ElectionStateFile(node.env, LOG, file._history)
    assert again.state == ElectionState(3, voted=ONE)


def test_a_vote_file_that_makes_no_sense_is_damage() -> None:
    node = formatted()
    MetadataLog(node.env, node.settings)
    node.disk.open(f"{LOG}/quorum-state", create=True).append([b"{"])
    with pytest.raises(Damaged, match="quorum-state"):
        MetadataLog(node.env, node.settings)
