"""ApiVersions (api key 18), versions 0 to 4: what this listener serves.

A version that we do not know is answered in version 0 with UNSUPPORTED_VERSION and the range of
ApiVersions itself, so that the client can ask again (KIP-511).
"""

import re
from typing import Final

from ottla.broker.connection import Reply
from ottla.broker.dispatch import SERVED, Served, handles, send
from ottla.broker.server import Broker
from ottla.metadata.features import SUPPORTED
from ottla.model.errors import ErrorCode
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages import api_versions as wire

SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
NAMED_SINCE: Final = 3
ZERO_LEVEL_SINCE: Final = 4


@handles(wire.Request)
def handle(request: wire.Request | None, reply: Reply, broker: Broker) -> None:
    if request is None:
        reply.version = 0
        known = SERVED[ApiKey.API_VERSIONS].versions
        only = [wire.ApiVersion(ApiKey.API_VERSIONS, known[0], known[-1])]
        send(reply, wire.Response(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=only))
        return
    if reply.version >= NAMED_SINCE:
        names = (request.client_software_name, request.client_software_version)
        if not all(SOFTWARE.fullmatch(name) for name in names):
            send(reply, wire.Response(error_code=ErrorCode.INVALID_REQUEST))
            return
        reply.connection.software = " ".join(names)
    served = broker.dispatchers[reply.connection.listener].served
    send(reply, _response(broker, served, reply.version))


def _response(broker: Broker, served: dict[int, Served], version: int) -> wire.Response:
    return wire.Response(
        api_keys=[
            wire.ApiVersion(key, api.versions[0], api.versions[-1])
            for key, api in sorted(served.items())
        ],
        supported_features=[
            wire.SupportedFeatureKey(name, levels.min_version, levels.max_version)
            for name, levels in SUPPORTED.items()
            # Clients before version 4 fail on a range that starts at 0.
            if version >= ZERO_LEVEL_SINCE or levels.min_version > 0
        ],
        finalized_features_epoch=broker.image.offset,
        finalized_features=[
            wire.FinalizedFeatureKey(name, level, level)
            for name, level in sorted(broker.quorum.finalized_features.items())
        ],
    )
