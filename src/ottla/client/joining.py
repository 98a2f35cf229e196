"""What a node asks before it joins a cluster. Blocking: nothing else runs yet."""

from collections.abc import Sequence

from ottla.client.dialer import Dialer
from ottla.client.errors import ClientError
from ottla.env.network import Address
from ottla.model.types import Millis
from ottla.protocol.messages import describe_cluster

TIMEOUT_MS: Millis = 3_000
BROKERS, CONTROLLERS = 1, 2  # Types of endpoint.


def find_cluster_id(servers: Sequence[Address]) -> str | None:
    """The id of the cluster that these brokers or controllers belong to; None if none answers."""
    for address in servers:
        try:
            connection = Dialer("ottla").dial_blocking(address, timeout_ms=TIMEOUT_MS)
        except ClientError:
            continue
        try:
            for endpoint in (CONTROLLERS, BROKERS):
                request = describe_cluster.Request(endpoint_type=endpoint)
                answer = connection.ask(request, describe_cluster.Response)
                if answer.error_code == 0 and answer.cluster_id:
                    return answer.cluster_id
        except ClientError:
            continue
        finally:
            connection.close()
    return None
