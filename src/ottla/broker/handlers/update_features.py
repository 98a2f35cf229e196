"""UpdateFeatures (api key 57), versions 0 to 2: raise or lower what all nodes support.

    v1  validate_only, kinds of downgrade     v2  one error for all

The controller checks and decides.
"""

from ottla.broker.context import BrokerContext
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.metadata.decisions.feature_updates import SAFE_DOWNGRADE
from ottla.protocol.messages import update_features as wire


@handles(wire.Request)
async def handle(request: wire.Request, reply: Reply, broker: BrokerContext) -> wire.Response:
    # Another node may decide it, and is asked in the newest version, which says some things
    # otherwise, and answers with less.
    for update in request.feature_updates:
        if update.allow_downgrade:
            update.allow_downgrade, update.upgrade_type = False, SAFE_DOWNGRADE
    response = await reply.submit(request)
    assert isinstance(response, wire.Response), "the controller answers in kind"
    if not response.error_code:
        names = [update.feature for update in request.feature_updates]
        response.results = [wire.UpdatableFeatureResult(name) for name in names]
    return response
