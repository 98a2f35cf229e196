"""AddRaftVoter (api key 80), versions 0 to 1: one more voter for the quorum.

Only the quorum's leader can change the voters: a broker hands the request on.
"""

from ottla.broker.dispatch import Context, handles
from ottla.broker.server import Broker
from ottla.broker.voter_requests import changed_by_leader
from ottla.protocol.messages import add_raft_voter as wire


@handles(wire.Request)
async def handle(request: wire.Request, context: Context, broker: Broker) -> wire.Response:
    response = await changed_by_leader(request, broker)
    assert isinstance(response, wire.Response), "the leader answers in kind"
    return response
