import pytest

from ottla.client.offsets import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED
from ottla.model.types import TopicPartition
from ottla.spark.arrow.schema import COLUMNS, WITH_HEADERS
from ottla.spark.errors import BadOption
from ottla.spark.sessions.session import PUSHDOWN_VARIABLE
from ottla.spark.source.options import SourceOptions, chosen_columns, source_options

LEAST = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders"}


def stream(**options: str) -> SourceOptions:
    return source_options({**LEAST, **options}, is_stream=True)


def batch(**options: str) -> SourceOptions:
    return source_options({**LEAST, **options}, is_stream=False)


def test_a_stream_begins_at_the_end_and_a_batch_at_the_beginning() -> None:
    assert stream().starting.everywhere == LATEST
    assert batch().starting.everywhere == EARLIEST
    assert batch().ending.everywhere == LATEST
    assert (stream().columns, stream().isolation) == (COLUMNS, READ_UNCOMMITTED)
    assert stream().fails_on_data_loss


def test_topics_are_named_matched_or_assigned() -> None:
    assert stream(subscribe=" a, b,a ").selection.names == ("a", "b")
    base = {"kafka.bootstrap.servers": "localhost:9092"}
    made = source_options({**base, "subscribePattern": "a.*"}, is_stream=True)
    assert made.selection.pattern is not None
    made = source_options({**base, "assign": '{"a": [1, 0], "b": [2]}'}, is_stream=True)
    places = (TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 2))
    assert made.selection.assigned == places


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "exactly one of"),
        ({"subscribe": "a", "assign": "{}"}, "exactly one of"),
        ({"subscribe": " , "}, "names of topics"),
        ({"subscribePattern": "("}, "no regular expression"),
        ({"assign": '{"a": 1}'}, "must be like"),
        ({"assign": '{"a": ["x"]}'}, "must be like"),
        ({"assign": "{}"}, "must be like"),
    ],
)
def test_what_chooses_nothing_is_refused(options: dict[str, str], why: str) -> None:
    with pytest.raises(BadOption, match=why):
        source_options({"kafka.bootstrap.servers": "localhost:9092", **options}, is_stream=True)


def test_bounds_by_number_time_and_for_all() -> None:
    place = TopicPartition("orders", 0)
    assert batch(startingOffsets='{"orders": {"0": 5}}').starting.offsets == {place: 5}
    assert stream(startingOffsets='{"orders": {"0": -1}}').starting.offsets == {place: LATEST}
    by_time = batch(startingOffsetsByTimestamp='{"orders": {"0": 99}}').starting
    assert by_time.times_ms == {place: 99}
    assert not by_time.is_latest_if_none
    both = batch(startingTimestamp="7", startingOffsets="earliest", endingTimestamp="9")
    assert (both.starting.time_ms, both.ending.time_ms) == (7, 9)
    assert both.ending.is_latest_if_none


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"startingOffsets": '{"orders": {"0": -3}}'}, "cannot be -3"),
        ({"startingOffsets": '{"orders": {"x": 3}}'}, "cannot be 3"),
        ({"startingOffsets": '{"orders": 3}'}, "must be like"),
        ({"startingOffsets": "{"}, "it is not JSON"),
        ({"startingOffsets": '{"orders": {"0": -1}}'}, "begins at the latest"),
        ({"endingOffsets": "earliest"}, "ends at the earliest"),
        ({"startingTimestamp": "yesterday"}, "whole number"),
        ({"startingOffsetsByTimestampStrategy": "guess"}, "one of error, latest"),
        ({"columns": "value,value"}, "name each column once"),
        ({"columns": "value", "includeHeaders": "true"}, "headers are not among them"),
        ({"kafka.isolation.level": "serializable"}, "one of read_uncommitted, read_committed"),
    ],
)
def test_a_batch_that_cannot_be_is_refused(options: dict[str, str], why: str) -> None:
    with pytest.raises(BadOption, match=why):
        batch(**options)


def test_a_stream_has_no_end() -> None:
    with pytest.raises(BadOption, match="'endingOffsets' is 'latest': a stream has no end"):
        stream(endingOffsets="latest")


def test_columns_and_headers() -> None:
    assert stream(includeHeaders="true").columns == WITH_HEADERS
    assert chosen_columns({"columns": "TIMESTAMPTYPE, key"}) == ("timestampType", "key")


def test_limits_and_kafka_s_own_settings() -> None:
    made = stream(
        **{
            "maxBytesPerTrigger": "2m",
            "maxTriggerDelay": "30s",
            "kafka.isolation.level": "read_committed",
            "kafka.max.partition.fetch.bytes": "1m",
            "kafka.fetch.max.bytes": "512k",
        }
    )
    assert (made.bytes_max, made.trigger_delay_ms_max) == (2**21, 30_000)
    assert (made.isolation, made.fetch_bytes) == (READ_COMMITTED, 2**19)


def test_filters_are_taken_where_the_session_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PUSHDOWN_VARIABLE, raising=False)
    assert not batch().has_pushdown
    assert batch(filterPushdown="true").has_pushdown
    monkeypatch.setenv(PUSHDOWN_VARIABLE, "true")
    assert batch().has_pushdown
    assert not batch(filterPushdown="false").has_pushdown
