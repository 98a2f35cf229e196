"""Subscriptions by regular expression: which topics each stands for, looked up when needed."""

from collections.abc import Mapping

from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.topics import BadExpression
from ottla.groups.turn import Turn
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.consumer_group_records import (
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)

Metadata = ConsumerGroupMemberMetadataValue


def still_used(metadata_of: Mapping[str, Metadata]) -> set[str]:
    return {one.subscribed_topic_regex or "" for one in metadata_of.values()} - {""}


def resolve_expressions(
    turn: Turn, group: ConsumerGroup, metadata_of: Mapping[str, Metadata]
) -> dict[str, frozenset[str]]:
    """The topics of every expression that is in use, as they are now.

    What changed is written; a bad expression refuses the whole request.
    """
    resolved = {}
    for expression in sorted(still_used(metadata_of)):
        try:
            matches = turn.around.compile_expression(expression)
        except BadExpression as error:
            if expression in group.expressions:  # Another coordinator took it; keep what it found.
                resolved[expression] = group.expressions[expression]
                continue
            raise Refusal(
                ErrorCode.INVALID_REGULAR_EXPRESSION,
                f"SubscribedTopicRegex `{expression}` is not a valid regular expression: {error}.",
            ) from error
        topics = frozenset(name for name in turn.around.topics.names() if matches(name))
        resolved[expression] = topics
        if group.expressions.get(expression) != topics:
            key = ConsumerGroupRegularExpressionKey(group.id, expression)
            turn.write(key, ConsumerGroupRegularExpressionValue(sorted(topics), 0, turn.wall))
    for expression in sorted(set(group.expressions) - set(resolved)):
        turn.write(ConsumerGroupRegularExpressionKey(group.id, expression), None)
    return resolved
