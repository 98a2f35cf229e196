"""Voters are changed by the leader, whichever broker is asked."""

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.principal import ANONYMOUS, Origin
from ottla.model.types import ZERO_UUID
from ottla.protocol.messages import remove_raft_voter
from tests.unit.broker.quorum_cluster import CLUSTER, cluster_of

ORIGIN = Origin(ANONYMOUS, "app", "10.1.2.3")


def test_a_broker_that_does_not_lead_hands_it_on() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        request = remove_raft_voter.Request(CLUSTER, 3, ZERO_UUID)
        for node in cluster.nodes.values():
            try:
                response = cluster.run(node.broker.quorum.requests.change_voters(request, ORIGIN))
                code, message = response.error_code, response.error_message
            except Refusal as refusal:
                code, message = refusal.code, refusal.message
            assert code == ErrorCode.UNSUPPORTED_VERSION  # Static voters are changed by nobody.
            assert "kraft.version is 0" in (message or "")
