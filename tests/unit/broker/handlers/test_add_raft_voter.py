"""AddRaftVoter: a quorum of one refuses what makes no sense."""

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import add_raft_voter as wire
from tests.unit.broker.serving import serving


def test_a_voter_that_votes_already_is_refused() -> None:
    with serving() as world:
        cluster = world.broker.image.cluster_id
        where = [wire.Listener("CONTROLLER", "elsewhere", 1)]
        answer = world.client().ask(wire.Request(cluster, 100, 1, b"1" * 16, where), 1)
        assert answer.error_code == ErrorCode.DUPLICATE_VOTER
        assert "already part of the set of voters" in answer.error_message
        other = world.client().ask(wire.Request("other", 100, 2, b"2" * 16, where), 0)
        assert other.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
