"""What is refused at the start, with a sentence that says why."""

import pytest

from ottla.model.errors import FormatRefused
from ottla.model.types import NodeId
from ottla.quorum.voters import Voter, Voters
from tests.unit.broker.driving import ONE, Node


def test_a_directory_of_static_voters_needs_the_setting_that_names_them() -> None:
    node = Node()
    node.format(standalone_at=None, is_dynamic=False)
    with pytest.raises(FormatRefused, match=r"set controller.quorum.voters"):
        node.driver().open()


def test_a_node_on_another_disk_is_no_voter() -> None:
    node = Node()
    node.format(standalone_at=None, initial_voters=Voters.of([Voter(ONE, b"\1" * 16, {})]))
    assert node.driver().open() is None  # The disk that the voters name.
    other = Node()
    other.format(standalone_at=None, initial_voters=Voters.of([Voter(ONE, b"\1" * 16, {})]))
    meta = other.disk.read("/data/meta.properties").replace(b"AQEBAQEBAQEBAQEBAQEBAQ", b"_" * 22)
    file = other.disk.open("/data/meta.properties")
    file.truncate(0)
    file.append([meta.replace(b"_" * 22, b"AgICAgICAgICAgICAgICAg")])
    with pytest.raises(FormatRefused, match=r"not among the voters"):
        other.driver().open()


def test_one_voter_of_several_waits_for_the_others() -> None:
    voters = Voters.of([Voter(NodeId(n), bytes([n]) * 16, {}) for n in (1, 2, 3)])
    node = Node()
    node.format(standalone_at=None, initial_voters=voters)
    driver = node.driver()
    driver.open()
    assert not driver.is_alone
