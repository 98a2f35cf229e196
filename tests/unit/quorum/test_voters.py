import pytest

from ottla.model.types import ZERO_UUID, NodeId, uuid_text
from ottla.quorum.voters import Address, Voter, Voters, initial_voters

DISK = b"d" * 16
ONE = Voter(NodeId(1), DISK, {"CONTROLLER": Address("h", 9093)})
TWO = Voter(NodeId(2), b"e" * 16, {"CONTROLLER": Address("i", 9093)}, (0, 0))


def test_voters_come_back_from_their_record() -> None:
    voters = Voters.of([TWO, ONE])
    assert list(voters.by_id) == [1, 2]
    assert Voters.from_record(voters.to_record()) == voters


def test_a_node_with_another_disk_is_another_voter() -> None:
    voters = Voters.of([ONE])
    assert voters.has(NodeId(1), DISK)
    assert not voters.has(NodeId(1), b"x" * 16)
    assert not voters.has(NodeId(2), DISK)


def test_a_static_voter_is_known_by_its_id_alone() -> None:
    assert Voters.of([Voter(NodeId(1), ZERO_UUID, {})]).has(NodeId(1), DISK)


def test_one_voter_is_alone() -> None:
    assert Voters.of([ONE]).is_alone
    assert not Voters.of([ONE, TWO]).is_alone


def test_initial_controllers_are_read_as_kafkas_tool_reads_them() -> None:
    text = f"1@h:9093:{uuid_text(DISK)},2@[::1]:9094:{uuid_text(b'e' * 16)}"
    voters = initial_voters(text, "CONTROLLER")
    assert voters.by_id[NodeId(1)].directory_id == DISK
    assert voters.by_id[NodeId(2)].endpoints == {"CONTROLLER": Address("::1", 9094)}


@pytest.mark.parametrize(
    "text",
    [
        "1@h:9093",
        f"h:9093:{uuid_text(DISK)}",
        f"1@h:{uuid_text(DISK)}",
        f"1@h:99999:{uuid_text(DISK)}",
        "1@h:9093:short",
        f"1@h:9093:{uuid_text(DISK)},1@i:9093:{uuid_text(DISK)}",
    ],
)
def test_what_is_no_list_of_controllers_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        initial_voters(text, "CONTROLLER")
