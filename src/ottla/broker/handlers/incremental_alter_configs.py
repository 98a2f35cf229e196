"""IncrementalAlterConfigs (api key 44), versions 0 to 1.

The controller decides about all resources but the loggers of this node, whose levels are changed
here and are not kept: a restart has those of its settings again.
"""

import logging
from collections import Counter
from typing import Final

from ottla.broker.context import BrokerContext
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.env.log_levels import LEVELS, ROOT, levels, set_level, unset_level
from ottla.metadata.configs.alteration import Operation
from ottla.metadata.decisions.config_changes import check_keys
from ottla.metadata.image.cluster import BROKER_LOGGER_RESOURCE
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.numbers import parse_integer
from ottla.model.principal import Origin
from ottla.model.types import NODE_ID_BITS
from ottla.protocol.messages import incremental_alter_configs as wire

logger = logging.getLogger(__name__)

_OTHERS: Final[dict[int, str]] = {
    each: each.name for each in (Operation.APPEND, Operation.SUBTRACT)
}


@handles(wire.Request)
async def handle(request: wire.Request, reply: Reply, broker: BrokerContext) -> wire.Response:
    resources = request.resources
    request.resources = [r for r in resources if r.resource_type != BROKER_LOGGER_RESOURCE]
    response = wire.Response()
    if request.resources or not resources:
        response = await reply.submit(request)
        assert isinstance(response, wire.Response), "the controller answers in kind"
    if len(request.resources) == len(resources):
        return response
    decided = iter(response.responses)
    counts = Counter(r.resource_name for r in resources if _is_logger(r))
    response.responses = [
        _altered(each, counts[each.resource_name], request.validate_only, reply.origin, broker)
        if _is_logger(each)
        else next(decided)
        for each in resources
    ]
    return response


def _is_logger(resource: wire.AlterConfigsResource) -> bool:
    return resource.resource_type == BROKER_LOGGER_RESOURCE


def _altered(
    resource: wire.AlterConfigsResource,
    mentions: int,
    validate_only: bool,
    origin: Origin,
    broker: BrokerContext,
) -> wire.AlterConfigsResourceResponse:
    """Change the levels of this node's loggers, all of them or none."""
    answer = wire.AlterConfigsResourceResponse(
        resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    try:
        if mentions > 1:
            raise _invalid("Each resource must appear at most once.")
        check_keys(resource)
        _check_is_this_node(resource.resource_name, broker)
        known = levels()
        for config in resource.configs:
            _check_level(config, known)
    except Refusal as refusal:
        answer.error_code, answer.error_message = refusal.code, refusal.message
        return answer
    if not validate_only:
        for config in resource.configs:
            _apply(config, origin)
    return answer


def _check_is_this_node(name: str, broker: BrokerContext) -> None:
    try:
        node_id = parse_integer(name, NODE_ID_BITS)
    except ValueError:
        raise _invalid(f"Node id must be an integer, but it is: {name}") from None
    if node_id != broker.node_id:
        raise _invalid(f"Unexpected node id. Expected {broker.node_id}, but received {node_id}")


def _check_level(config: wire.AlterableConfig, known: dict[str, str]) -> None:
    name, operation = config.name, config.config_operation
    if operation not in (Operation.SET, Operation.DELETE):
        spelled = _OTHERS.get(operation, f"Unknown ({operation})")
        raise _invalid(f"{spelled} operation is not allowed for the BROKER_LOGGER resource")
    if name not in known:
        raise Refusal(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if operation == Operation.SET and config.value not in LEVELS:
        raise Refusal(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {name} to {config.value} as it is not a supported log "
            f"level. Valid log levels are {', '.join(sorted(LEVELS))}",
        )
    if operation == Operation.DELETE and name == ROOT:
        raise _invalid(f"Removing the log level of the {ROOT} logger is not allowed")


def _apply(config: wire.AlterableConfig, origin: Origin) -> None:
    if config.config_operation == Operation.DELETE:
        unset_level(config.name)
    else:
        assert config.value is not None, "it was checked"
        set_level(config.name, config.value)
    logger.warning(
        "log level of %s is %s now, by %s (client %s at %s)",
        config.name,
        levels()[config.name],
        origin.principal,
        origin.client_id,
        origin.host,
    )


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)
