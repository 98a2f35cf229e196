"""The answer to a request that failed as a whole: its error, in every place where clients look.

Kafka has no common place for errors. Some answers have one code at the top, others one per topic,
partition or resource, so that such an answer names all that the request named. What each API does
here is what Apache Kafka's own requests do when they fail.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from types import ModuleType
from typing import Any, Final, NamedTuple

from ottla.broker.group_error_responses import GROUP_ANSWERS
from ottla.protocol.apis import ApiKey

# ruff: noqa: ANN401  Requests and responses are of whatever class their API has.

UNKNOWN_OFFSET: Final = -1
UNKNOWN_EPOCH: Final = -1
NO_PRODUCER_EPOCH: Final = -1
TOPIC_IDS_SINCE: Final = 13  # In Fetch: clients that know ids also know the code at the top.
TOPICS_SINCE: Final = 6  # In DeleteTopics: topics as structs, which may be named by their ids.


class Failure(NamedTuple):
    """What went wrong, with which request."""

    request: Any
    version: int
    code: int
    message: str | None


Answer = Callable[[Any, Failure], Any]  # From the module of the API's messages.


def error_response(
    api_key: int, request: object, version: int, code: int, message: str | None = None
) -> Any:
    """The response that says `code` to this request, for an API of any key."""
    wire = _messages(api_key)
    answer = _ANSWERS.get(api_key, _top_level)
    return answer(wire, Failure(request, version, code, message))


def _messages(api_key: int) -> ModuleType:
    return import_module(f"ottla.protocol.messages.{ApiKey(api_key).name.lower()}")


def _top_level(wire: Any, failure: Failure) -> Any:
    response = wire.Response(error_code=failure.code)
    if hasattr(response, "error_message"):
        response.error_message = failure.message
    return response


def _produce(wire: Any, failure: Failure) -> Any:
    def result(part: Any) -> Any:
        return wire.PartitionProduceResponse(
            index=part.index,
            error_code=failure.code,
            base_offset=UNKNOWN_OFFSET,
            error_message=failure.message,
        )

    return wire.Response(
        responses=[
            wire.TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[result(part) for part in topic.partition_data],
            )
            for topic in failure.request.topic_data
        ]
    )


def _fetch(wire: Any, failure: Failure) -> Any:
    request, code = failure.request, failure.code
    response = wire.Response(error_code=code, session_id=request.session_id)
    if failure.version < TOPIC_IDS_SINCE:
        response.responses = [
            wire.FetchableTopicResponse(
                topic=topic.topic,
                partitions=[
                    wire.PartitionData(
                        partition_index=part.partition,
                        error_code=code,
                        high_watermark=UNKNOWN_OFFSET,
                        records=b"",
                    )
                    for part in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    return response


def _list_offsets(wire: Any, failure: Failure) -> Any:
    def result(part: Any) -> Any:
        return wire.ListOffsetsPartitionResponse(
            partition_index=part.partition_index, error_code=failure.code
        )

    return wire.Response(
        topics=[
            wire.ListOffsetsTopicResponse(
                name=topic.name, partitions=[result(part) for part in topic.partitions]
            )
            for topic in failure.request.topics
        ]
    )


def _metadata(wire: Any, failure: Failure) -> Any:
    return wire.Response(
        error_code=failure.code,
        topics=[
            wire.MetadataResponseTopic(
                name=topic.name or "", topic_id=topic.topic_id, error_code=failure.code
            )
            for topic in failure.request.topics or ()
        ],
    )


def _create_topics(wire: Any, failure: Failure) -> Any:
    return wire.Response(topics=_named(wire.CreatableTopicResult, failure.request.topics, failure))


def _delete_topics(wire: Any, failure: Failure) -> Any:
    request = failure.request
    if failure.version >= TOPICS_SINCE:
        named = [(topic.name, topic.topic_id) for topic in request.topics]
    else:
        named = [(name, bytes(16)) for name in request.topic_names]
    return wire.Response(
        responses=[
            wire.DeletableTopicResult(
                name=name,
                topic_id=topic_id,
                error_code=failure.code,
                error_message=failure.message,
            )
            for name, topic_id in named
        ]
    )


def _create_partitions(wire: Any, failure: Failure) -> Any:
    topics = failure.request.topics
    return wire.Response(results=_named(wire.CreatePartitionsTopicResult, topics, failure))


def _delete_records(wire: Any, failure: Failure) -> Any:
    def result(part: Any) -> Any:
        return wire.DeleteRecordsPartitionResult(
            partition_index=part.partition_index,
            low_watermark=UNKNOWN_OFFSET,
            error_code=failure.code,
        )

    return wire.Response(
        topics=[
            wire.DeleteRecordsTopicResult(
                name=topic.name, partitions=[result(part) for part in topic.partitions]
            )
            for topic in failure.request.topics
        ]
    )


def _offset_for_leader_epoch(wire: Any, failure: Failure) -> Any:
    def result(part: Any) -> Any:
        return wire.EpochEndOffset(
            error_code=failure.code,
            partition=part.partition,
            leader_epoch=UNKNOWN_EPOCH,
            end_offset=UNKNOWN_OFFSET,
        )

    return wire.Response(
        topics=[
            wire.OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=[result(part) for part in topic.partitions]
            )
            for topic in failure.request.topics
        ]
    )


def _describe_configs(wire: Any, failure: Failure) -> Any:
    return wire.Response(results=_resources(wire.DescribeConfigsResult, failure))


def _alter_configs(wire: Any, failure: Failure) -> Any:
    return wire.Response(responses=_resources(wire.AlterConfigsResourceResponse, failure))


def _describe_topic_partitions(wire: Any, failure: Failure) -> Any:
    return wire.Response(
        topics=[
            wire.DescribeTopicPartitionsResponseTopic(name=topic.name, error_code=failure.code)
            for topic in failure.request.topics
        ]
    )


def _elect_leaders(wire: Any, failure: Failure) -> Any:
    def result(index: int) -> Any:
        return wire.PartitionResult(index, failure.code, failure.message)

    return wire.Response(
        error_code=failure.code if failure.version >= 1 else 0,
        replica_election_results=[
            wire.ReplicaElectionResult(topic.topic, [result(index) for index in topic.partitions])
            for topic in failure.request.topic_partitions or ()
        ],
    )


def _alter_partition_reassignments(wire: Any, failure: Failure) -> Any:
    def result(part: Any) -> Any:
        return wire.ReassignablePartitionResponse(
            part.partition_index, failure.code, failure.message
        )

    return wire.Response(
        error_code=failure.code,
        error_message=failure.message,
        responses=[
            wire.ReassignableTopicResponse(topic.name, [result(part) for part in topic.partitions])
            for topic in failure.request.topics
        ],
    )


def _init_producer_id(wire: Any, failure: Failure) -> Any:
    return wire.Response(error_code=failure.code, producer_epoch=NO_PRODUCER_EPOCH)


def _named(result: Any, topics: Iterable[Any], failure: Failure) -> list[Any]:
    return [
        result(name=topic.name, error_code=failure.code, error_message=failure.message)
        for topic in topics
    ]


def _resources(result: Any, failure: Failure) -> list[Any]:
    return [
        result(
            error_code=failure.code,
            error_message=failure.message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        for resource in failure.request.resources
    ]


_ANSWERS: Final[dict[int, Answer]] = {
    ApiKey.PRODUCE: _produce,
    ApiKey.FETCH: _fetch,
    ApiKey.LIST_OFFSETS: _list_offsets,
    ApiKey.METADATA: _metadata,
    ApiKey.CREATE_TOPICS: _create_topics,
    ApiKey.DELETE_TOPICS: _delete_topics,
    ApiKey.DELETE_RECORDS: _delete_records,
    ApiKey.INIT_PRODUCER_ID: _init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _offset_for_leader_epoch,
    ApiKey.DESCRIBE_CONFIGS: _describe_configs,
    ApiKey.ALTER_CONFIGS: _alter_configs,
    ApiKey.CREATE_PARTITIONS: _create_partitions,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _alter_configs,
    ApiKey.ELECT_LEADERS: _elect_leaders,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _alter_partition_reassignments,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _describe_topic_partitions,
    **GROUP_ANSWERS,
}
