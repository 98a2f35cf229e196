import pytest

from ottla.model.types import NodeId
from ottla.quorum.election_state import ElectionState, from_json, to_json

LED = ElectionState(3, NodeId(1))


def test_the_file_is_kafkas_byte_for_byte() -> None:
    assert to_json(LED, 1, (NodeId(1),)) == (
        b'{"leaderId":1,"leaderEpoch":3,"votedId":-1,'
        b'"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    )
    assert to_json(LED, 0, (NodeId(1),)) == (
        b'{"clusterId":"","leaderId":1,"leaderEpoch":3,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1}],"data_version":0}'
    )


@pytest.mark.parametrize("version", [0, 1])
def test_a_state_comes_back_from_its_file(version: int) -> None:
    assert from_json(to_json(LED, version, (NodeId(1),))) == LED


def test_a_vote_is_remembered_with_the_disk_it_was_given_to() -> None:
    voted = ElectionState(4, voted=NodeId(2), voted_directory_id=b"d" * 16)
    assert from_json(to_json(voted, 1, ())) == voted


@pytest.mark.parametrize(
    "data", [b"", b"[]", b'{"data_version":2}', b'{"data_version":1}', b'{"leaderId":1}']
)
def test_what_is_no_state_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_json(data)
