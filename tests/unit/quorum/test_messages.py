"""The quorum's messages on the wire: what is built is understood on the other side."""

import pytest

from ottla.model.types import NodeId
from ottla.protocol.codec import decode, encode
from ottla.protocol.messages import (
    begin_quorum_epoch,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    update_raft_voter,
    vote,
)
from ottla.quorum.log_view import OffsetAndEpoch
from ottla.quorum.messages import (
    Leadership,
    Misplaced,
    address_in,
    begin_request,
    begin_response,
    end_request,
    end_response,
    fetch_request,
    fetch_response,
    leadership_in,
    partition_of,
    snapshot_request,
    snapshot_response,
    vote_request,
    vote_response,
)
from tests.unit.quorum.scene import address, key

SAID = Leadership(5, NodeId(2))
WHERE = {"CONTROLLER": address(2)}
PLACE = OffsetAndEpoch(10, 4)


@pytest.mark.parametrize(
    "message",
    [
        vote_request("c", 5, key(1), key(2), PLACE, pre_vote=True),
        vote_response(SAID, address(2), granted=True),
        begin_request("c", SAID, key(1), WHERE),
        begin_response(SAID, address(2)),
        end_request("c", SAID, [key(3), key(1)], WHERE),
        end_response(SAID, address(2)),
        fetch_request("c", 5, key(1), PLACE, 7, wait_ms=500, bytes_max=100),
        fetch_response(SAID, address(2)),
        snapshot_request("c", 5, key(1), PLACE, 0, 100),
        snapshot_response(SAID, address(2)),
    ],
    ids=lambda message: f"{type(message).__module__.rpartition('.')[2]}-{type(message).__name__}",
)
def test_each_comes_back_from_the_wire_as_it_was(message: object) -> None:
    cls = type(message)
    newest = cls.VERSIONS.stop - 1  # type: ignore[attr-defined]
    again = decode(cls, encode(message, newest), newest)
    assert encode(again, newest) == encode(message, newest)
    assert partition_of(again) is not None


def test_responses_say_who_leads_and_where() -> None:
    for response in (
        vote_response(SAID, address(2)),
        begin_response(SAID, address(2)),
        end_response(SAID, address(2)),
        fetch_response(SAID, address(2)),
        snapshot_response(SAID, address(2)),
    ):
        assert leadership_in(partition_of(response)) == SAID
        assert address_in(response, NodeId(2)) == address(2)
        assert address_in(response, NodeId(3)) is None
    assert address_in(fetch_response(SAID, None), NodeId(2)) is None
    assert fetch_response(Leadership(5, NodeId(-1)), address(2)).node_endpoints == []


def test_update_raft_voter_response_gives_the_leader_and_its_address() -> None:
    where = update_raft_voter.CurrentLeader(2, 5, *address(2))
    response = update_raft_voter.Response(current_leader=where)
    assert leadership_in(response) == SAID
    assert address_in(response, NodeId(2)) == address(2)
    assert address_in(update_raft_voter.Response(), NodeId(2)) is None


@pytest.mark.parametrize(
    "message",
    [
        vote.Request(),
        vote.Request(topics=[vote.RequestTopicData("t", [vote.RequestPartitionData()])]),
        begin_quorum_epoch.Response(),
        end_quorum_epoch.Response(),
        fetch.Response(),
        fetch_snapshot.Request(topics=[fetch_snapshot.RequestTopicSnapshot("t", [])]),
    ],
)
def test_what_is_about_something_else_is_misplaced(message: object) -> None:
    with pytest.raises(Misplaced):
        partition_of(message)
