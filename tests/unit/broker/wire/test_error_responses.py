"""Every API's error answer fits its versions and says the error about all that was asked for."""

# ruff: noqa: ANN401  Messages are of whatever class their API has.

from typing import Any

import pytest

from ottla.broker.wire.apis import error_response
from ottla.model.errors import ErrorCode
from ottla.protocol.apis import ApiKey, request_class
from ottla.protocol.codec import decode, encode
from ottla.protocol.schema import Field, fields_of

CODE = ErrorCode.KAFKA_STORAGE_ERROR
SENTENCE = "the disk is gone"

# How many codes an answer holds for requests that name two of everything; with topics and
# partitions that is four. Metadata has one of its own since version 13, Fetch since version 7.
CODES = {
    ApiKey.PRODUCE: 4,
    ApiKey.LIST_OFFSETS: 4,
    ApiKey.CREATE_TOPICS: 2,
    ApiKey.DELETE_TOPICS: 2,
    ApiKey.DELETE_RECORDS: 4,
    ApiKey.INIT_PRODUCER_ID: 1,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: 4,
    ApiKey.DESCRIBE_CONFIGS: 2,
    ApiKey.ALTER_CONFIGS: 2,
    ApiKey.CREATE_PARTITIONS: 2,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: 2,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: 5,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: 1,
    ApiKey.UPDATE_FEATURES: 1,
    ApiKey.UNREGISTER_BROKER: 1,
    ApiKey.DESCRIBE_CLUSTER: 1,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: 2,
    ApiKey.API_VERSIONS: 1,
}
SERVED = [*CODES, ApiKey.METADATA, ApiKey.FETCH, ApiKey.DESCRIBE_LOG_DIRS]


def two_of_everything(cls: type) -> Any:
    return cls(**{field.name: _value(field) for field in fields_of(cls) if field.kind == "array"})


def _value(field: Field) -> list[Any]:
    if isinstance(field.of, type):
        return [two_of_everything(field.of), two_of_everything(field.of)]
    return ["one", "two"] if field.of == "string" else [1, 2]


def round_trip(message: Any, version: int) -> Any:
    """As the other side sees it: only what this version can say."""
    encoded = encode(message, version)
    return decode(type(message), encoded, version)


def codes_in(message: Any, version: int) -> list[int]:
    found = []
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        if field.name == "error_code" and field.is_in(version):
            found.append(value)
        elif field.kind == "array" and isinstance(field.of, type):
            found += [code for item in value or () for code in codes_in(item, version)]
    return found


def answer(key: ApiKey, version: int) -> Any:
    cls = request_class(key)
    request = two_of_everything(cls)
    if key is ApiKey.DELETE_TOPICS:  # One way to name topics or the other.
        request = cls(topics=request.topics) if version >= 6 else cls(topic_names=["a", "b"])
    elif key is ApiKey.FETCH:
        request.forgotten_topics_data = []
    request = round_trip(request, version)
    return round_trip(error_response(key, request, version, CODE, SENTENCE), version)


def codes_for(key: ApiKey, version: int) -> list[int]:
    return codes_in(answer(key, version), version)


@pytest.mark.parametrize("key", SERVED, ids=lambda key: key.name)
def test_an_error_answer_can_be_sent_in_every_version(key: ApiKey) -> None:
    for version in request_class(key).VERSIONS:
        codes = set(codes_for(key, version))
        has_no_place = key is ApiKey.DESCRIBE_LOG_DIRS and version < 3
        assert codes == (set() if has_no_place else {CODE}), f"version {version}"


@pytest.mark.parametrize("key", CODES, ids=lambda key: key.name)
def test_an_error_answer_names_all_that_the_request_named(key: ApiKey) -> None:
    for version in request_class(key).VERSIONS:
        assert len(codes_for(key, version)) == CODES[key], f"version {version}"


@pytest.mark.parametrize(("version", "codes"), [(4, 4), (7, 5), (12, 5), (13, 1), (18, 1)])
def test_a_fetch_by_id_is_refused_with_one_code_at_the_top(version: int, codes: int) -> None:
    assert len(codes_for(ApiKey.FETCH, version)) == codes


@pytest.mark.parametrize(("version", "codes"), [(0, 2), (12, 2), (13, 3)])
def test_metadata_fails_per_topic_and_as_a_whole(version: int, codes: int) -> None:
    assert len(codes_for(ApiKey.METADATA, version)) == codes


def test_the_sentence_is_told_where_there_is_a_place_for_it() -> None:
    assert answer(ApiKey.DESCRIBE_CLUSTER, 2).error_message == SENTENCE
    assert answer(ApiKey.CREATE_TOPICS, 7).topics[0].error_message == SENTENCE
    assert answer(ApiKey.PRODUCE, 8).responses[0].partition_responses[1].error_message == SENTENCE


def test_an_api_that_has_no_row_here_fails_at_the_top() -> None:
    response = error_response(ApiKey.HEARTBEAT, None, 4, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
