"""CreateTopics (api key 19), versions 2 to 7.

v5  the answer describes the topic and its configs     v7  topic_id in the answer

The controller checks and decides; partitions are hosted here before the answer leaves, so that
a topic whose creation is confirmed can be written to at once. Topics succeed or fail one by one.
So the controller is asked for many of them slice by slice, while others are served in between.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from ottla.broker.handlers.context import CreationContext
from ottla.broker.wire import error_responses
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.error_responses import Failure
from ottla.broker.wire.responses import encoded
from ottla.metadata.decisions.topic_creation import check_total, partition_count
from ottla.metadata.image.cluster import METADATA_TOPIC
from ottla.model.errors import Refusal
from ottla.protocol.messages import create_topics as wire

SLICE: Final = 200  # Topics that the controller decides without a pause, or
SLICE_PARTITIONS: Final = 1000  # partitions, unless one topic has more.
TOPIC_US: Final = 25
PARTITION_US: Final = 5
CONFIGS_SINCE: Final = 5


@handles(wire.Request)
async def handle(request: wire.Request, reply: Reply, broker: CreationContext) -> Any:  # noqa: ANN401
    partitions_default = broker.settings.num_partitions
    if len(request.topics) <= 1:
        response = await _submit(request, reply)
    else:
        check_total(request.topics, partitions_default)
        response = wire.Response()
        for topics in _slices(request.topics, partitions_default):
            part = wire.Request(topics, request.timeout_ms, request.validate_only)
            partitions = sum(partition_count(topic, partitions_default) for topic in topics)
            us = len(topics) * TOPIC_US + partitions * PARTITION_US
            await broker.scans.budget.wait(us)
            try:
                response.topics += (await _submit(part, reply)).topics
            except Refusal as refusal:
                if not response.topics:
                    raise
                # What was decided before stays so.
                failure = Failure(part, reply.version, refusal.code, refusal.message)
                response.topics += error_responses.create_topics(wire, failure).topics
    await broker.partitions.hosting.wait_hosted(reply.connection.listener)
    elements = len(response.topics)
    if reply.version >= CONFIGS_SINCE:
        elements += sum(len(topic.configs or ()) for topic in response.topics)
    return await encoded(response, elements, reply.version, broker)


async def _submit(request: wire.Request, reply: Reply) -> wire.Response:
    response = await reply.submit(request)
    assert isinstance(response, wire.Response), "the controller answers in kind"
    return response


def _slices(
    topics: list[wire.CreatableTopic], partitions_default: int
) -> Iterator[list[wire.CreatableTopic]]:
    """In the order of the request; names that Kafka refuses after all others come last."""
    counts = Counter(topic.name for topic in topics)
    part: list[wire.CreatableTopic] = []
    late: list[wire.CreatableTopic] = []
    left = SLICE_PARTITIONS
    for topic in topics:
        if counts[topic.name] > 1 or topic.name == METADATA_TOPIC:
            late.append(topic)
            continue
        count = partition_count(topic, partitions_default)
        if part and (len(part) == SLICE or count > left):
            yield part
            part, left = [], SLICE_PARTITIONS
        part.append(topic)
        left -= count
    if part or late:
        yield [*part, *late]
