"""RemoveRaftVoter: a quorum of one refuses what makes no sense."""

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import remove_raft_voter as wire
from tests.unit.broker.serving import serving


def test_the_last_voter_stays() -> None:
    with serving() as world:
        identity = world.broker.quorum.identity
        own = wire.Request(identity.cluster_id, 1, identity.directory_id)
        assert world.client().ask(own, 0).error_code == ErrorCode.INVALID_REQUEST
        other = wire.Request(identity.cluster_id, 9, b"9" * 16)
        answer = world.client().ask(other, 0)
        assert answer.error_code == ErrorCode.VOTER_NOT_FOUND
        assert "voter 9" in answer.error_message
