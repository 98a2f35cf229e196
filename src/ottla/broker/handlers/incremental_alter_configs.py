"""IncrementalAlterConfigs (api key 44), versions 0 to 1.

v1   flexible encoding

The controller checks and decides; the change is in force here before the answer leaves.
"""

from typing import TYPE_CHECKING

from ottla.broker.dispatch import Context, handles
from ottla.protocol.messages import incremental_alter_configs as wire

if TYPE_CHECKING:
    from ottla.broker.server import Broker


@handles(wire.Request)
async def handle(request: wire.Request, context: Context, broker: "Broker") -> wire.Response:
    response = await broker.quorum.submit(request)
    assert isinstance(response, wire.Response), "the controller answers in kind"
    return response
