"""ApiVersions (api key 18), versions 0 to 4: what this listener serves.

A version that we do not know is answered in version 0 with UNSUPPORTED_VERSION and the range of
ApiVersions itself, so that the client can ask again (KIP-511).
"""

import re
from typing import Final

from ottla.broker.handlers.context import QuorumContext
from ottla.broker.wire.apis import APIS, Listener, handles, served_on
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.responses import send
from ottla.metadata.image.features import KRAFT_VERSION, SUPPORTED, advertised
from ottla.model.errors import ErrorCode
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages import api_versions as wire

SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
NAMED_SINCE: Final = 3
ZERO_LEVEL_SINCE: Final = 4


@handles(wire.Request)
def handle(request: wire.Request | None, reply: Reply, broker: QuorumContext) -> None:
    if request is None:
        reply.version = 0
        known = APIS[ApiKey.API_VERSIONS].versions
        only = [wire.ApiVersion(ApiKey.API_VERSIONS, known[0], known[-1])]
        send(reply, wire.Response(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=only))
        return
    if reply.version >= NAMED_SINCE:
        names = (request.client_software_name, request.client_software_version)
        if not all(SOFTWARE.fullmatch(name) for name in names):
            send(reply, wire.Response(error_code=ErrorCode.INVALID_REQUEST))
            return
    is_controller = reply.connection.listener in broker.settings.controller_listener_names
    listener = Listener.CONTROLLER if is_controller else Listener.BROKER
    send(reply, _response(broker, listener, reply.version))


def _response(broker: QuorumContext, listener: Listener, version: int) -> wire.Response:
    return wire.Response(
        api_keys=[
            wire.ApiVersion(key, versions[0], versions[-1])
            for key, api in sorted(served_on(listener).items())
            if (versions := api.versions_on(listener))
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
            for name, level in sorted(_finalized_features(broker).items())
        ],
    )


def _finalized_features(broker: QuorumContext) -> dict[str, int]:
    """The levels that clients may rely on; that of the quorum is in its own records."""
    features = advertised(broker.image.features)
    if broker.quorum.kraft_version:
        features[KRAFT_VERSION] = broker.quorum.kraft_version
    return features
