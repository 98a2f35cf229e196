"""Encoding and decoding: versions, errors of the caller, errors of a peer."""

import pytest

from ottla.model.errors import ErrorCode, ProtocolError, Refusal
from ottla.protocol.codec import decode, decode_from, encode, encode_into, encode_steps
from ottla.protocol.messages import list_offsets, metadata, produce


def test_encode_into_appends() -> None:
    out = bytearray(b"size")
    encode_into(metadata.Request(topics=[]), 1, out)
    assert out == b"size\0\0\0\0"


def test_a_failed_encoding_leaves_the_buffer_unchanged() -> None:
    out = bytearray(b"size")
    request = produce.Request(acks=1, topic_data=[produce.TopicProduceData("a"), None])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="does not fit version 9"):
        encode_into(request, 9, out)
    assert out == b"size"


def test_a_message_is_encoded_the_same_step_by_step_and_its_arrays_may_be_lazy() -> None:
    topics = [metadata.MetadataRequestTopic(name=f"topic {n}") for n in range(2000)]
    out = bytearray(b"size")
    assert len(list(encode_steps(metadata.Request(topics), 12, out))) > 2
    assert out == b"size" + encode(metadata.Request(topics), 12)
    lazy = dict.fromkeys(range(2000)).keys()
    request = metadata.Request(lazy)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="does not fit version 12"):
        list(encode_steps(request, 12, bytearray()))


def test_decoding_starts_and_ends_where_the_message_does() -> None:
    request = metadata.Request(topics=[metadata.MetadataRequestTopic(name="orders")])
    data = encode(request, 12)
    assert decode_from(metadata.Request, b"head" + data + b"tail", 4, 12) == (
        request,
        4 + len(data),
    )


def test_records_are_a_view_of_the_frame_and_can_be_written_through() -> None:
    partition = produce.PartitionProduceData(0, b"batch")
    request = produce.Request(
        topic_data=[produce.TopicProduceData("a", partition_data=[partition])]
    )
    frame = bytearray(encode(request, 9))
    records = decode(produce.Request, frame, 9).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    records[0:1] = b"B"
    assert b"Batch" in frame


@pytest.mark.parametrize("version", [0, 2, 14, -1])
def test_encoding_an_unknown_version_raises_value_error(version: int) -> None:
    with pytest.raises(ValueError, match="no version"):
        encode(produce.Request(), version)
    with pytest.raises(ValueError, match="no version"):
        decode(produce.Request, b"", version)


def test_a_field_that_the_version_lacks_is_refused_unless_it_is_ignorable() -> None:
    request = list_offsets.Request(isolation_level=1, timeout_ms=5)
    with pytest.raises(Refusal, match=r"version 1 .* no place for Request\.isolation_level") as no:
        encode(request, 1)
    assert no.value.code == ErrorCode.UNSUPPORTED_VERSION
    assert decode(list_offsets.Request, encode(request, 2), 2).timeout_ms == 0  # Ignorable.


@pytest.mark.parametrize(
    "request_",
    [
        produce.Request(acks=1 << 15),
        produce.Request(timeout_ms=None),  # type: ignore[arg-type]
        produce.Request(topic_data=None),  # type: ignore[arg-type]
        produce.Request(topic_data=[produce.TopicProduceData(None)]),  # type: ignore[arg-type]
    ],
)
def test_encoding_a_value_that_does_not_fit_raises_value_error(request_: produce.Request) -> None:
    for version in (3, 9):
        with pytest.raises(ValueError, match=f"does not fit version {version}"):
            encode(request_, version)


def test_a_string_longer_than_32767_bytes_is_refused_in_both_encodings() -> None:
    request = produce.Request(transactional_id="x" * 40_000)
    for version in (3, 9):
        with pytest.raises(ValueError, match="does not fit"):
            encode(request, version)


def test_every_truncation_of_a_message_is_refused() -> None:
    partition = produce.PartitionProduceData(0, b"batch")
    request = produce.Request(
        "id", -1, 100, [produce.TopicProduceData("a", bytes(range(16)), [partition])]
    )
    request.topic_data[0].name = "orders"
    for version in produce.Request.VERSIONS:
        data = encode(request, version)
        for size in range(len(data)):
            with pytest.raises(ProtocolError):
                decode(produce.Request, data[:size], version)


def test_text_that_is_not_utf_8_is_replaced_as_kafka_does() -> None:
    data = b"\0\0\0\x01\0\x02a\xff"
    (topic,) = decode(metadata.Request, data, 1).topics or []
    assert topic.name == "a�"


@pytest.mark.parametrize("version", [4, 9])
def test_text_that_cannot_be_written_again_after_replacement_is_refused(version: int) -> None:
    fitting, growing = b"\xff" * 10_922, b"\xff" * 10_923
    for text in (fitting, growing, b"x" * 32_767, "\u20ac".encode() * 10_922):
        name = "x" * len(text)
        data = encode(metadata.Request([metadata.MetadataRequestTopic(name=name)]), version)
        data = data.replace(name.encode(), text)
        if text is growing:
            with pytest.raises(ProtocolError, match="is not UTF-8, and has 32769 bytes"):
                decode(metadata.Request, data, version)
        else:
            request = decode(metadata.Request, data, version)
            assert decode(metadata.Request, encode(request, version), version) == request
