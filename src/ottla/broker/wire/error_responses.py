"""The answer to a request that failed as a whole: its error, in every place where clients look.

Kafka has no common place for errors. Some answers have one code at the top, others one per topic,
partition or resource, so that such an answer names all that the request named. What each API does
here is what Apache Kafka's own requests do when they fail. `apis.py` says which API has which.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

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


def top_level(wire: Any, failure: Failure) -> Any:
    response = wire.Response(error_code=failure.code)
    if hasattr(response, "error_message"):
        response.error_message = failure.message
    return response


def produce(wire: Any, failure: Failure) -> Any:
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


def fetch(wire: Any, failure: Failure) -> Any:
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


def list_offsets(wire: Any, failure: Failure) -> Any:
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


def metadata(wire: Any, failure: Failure) -> Any:
    return wire.Response(
        error_code=failure.code,
        topics=[
            wire.MetadataResponseTopic(
                name=topic.name or "", topic_id=topic.topic_id, error_code=failure.code
            )
            for topic in failure.request.topics or ()
        ],
    )


def create_topics(wire: Any, failure: Failure) -> Any:
    return wire.Response(topics=_named(wire.CreatableTopicResult, failure.request.topics, failure))


def delete_topics(wire: Any, failure: Failure) -> Any:
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


def create_partitions(wire: Any, failure: Failure) -> Any:
    topics = failure.request.topics
    return wire.Response(results=_named(wire.CreatePartitionsTopicResult, topics, failure))


def delete_records(wire: Any, failure: Failure) -> Any:
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


def offset_for_leader_epoch(wire: Any, failure: Failure) -> Any:
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


def describe_configs(wire: Any, failure: Failure) -> Any:
    return wire.Response(results=_resources(wire.DescribeConfigsResult, failure))


def alter_configs(wire: Any, failure: Failure) -> Any:
    return wire.Response(responses=_resources(wire.AlterConfigsResourceResponse, failure))


def describe_topic_partitions(wire: Any, failure: Failure) -> Any:
    return wire.Response(
        topics=[
            wire.DescribeTopicPartitionsResponseTopic(name=topic.name, error_code=failure.code)
            for topic in failure.request.topics
        ]
    )


def elect_leaders(wire: Any, failure: Failure) -> Any:
    def result(index: int) -> Any:
        return wire.PartitionResult(index, failure.code, failure.message)

    return wire.Response(
        error_code=failure.code if failure.version >= 1 else 0,
        replica_election_results=[
            wire.ReplicaElectionResult(topic.topic, [result(index) for index in topic.partitions])
            for topic in failure.request.topic_partitions or ()
        ],
    )


def alter_partition_reassignments(wire: Any, failure: Failure) -> Any:
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


def init_producer_id(wire: Any, failure: Failure) -> Any:
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
