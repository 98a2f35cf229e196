"""Headers of requests and responses, flexible and not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.errors import ProtocolError
from ottla.protocol.apis import FLEXIBLE_SINCE, ApiKey
from ottla.protocol.header import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    response_header,
)


@given(
    key=st.sampled_from(ApiKey),
    version=st.integers(0, 20),
    correlation_id=st.integers(-(1 << 31), (1 << 31) - 1),
    client_id=st.text(st.characters(exclude_categories=["Cs"]), max_size=300),
)
def test_a_request_header_is_read_as_it_was_written(
    key: ApiKey, version: int, correlation_id: int, client_id: str
) -> None:
    header = RequestHeader(key, version, correlation_id, client_id)
    frame = encode_request_header(header)
    assert decode_request_header(frame + b"body") == (header, len(frame))
    assert decode_request_header(memoryview(bytearray(frame))) == (header, len(frame))


def test_the_client_id_has_a_classic_length_even_in_a_flexible_header() -> None:
    header = RequestHeader(ApiKey.PRODUCE, 9, 5, "me")
    assert encode_request_header(header) == b"\0\0\0\x09\0\0\0\x05\0\x02me\0"
    old = RequestHeader(ApiKey.PRODUCE, 8, 5, "me")
    assert encode_request_header(old) == b"\0\0\0\x08\0\0\0\x05\0\x02me"


def test_a_null_client_id_is_an_empty_one() -> None:
    header, position = decode_request_header(b"\0\x03\0\x01\0\0\0\x07\xff\xff")
    assert (header.client_id, position) == ("", 10)


def test_a_client_id_that_is_not_utf_8_is_replaced_as_kafka_does() -> None:
    header, _ = decode_request_header(b"\0\x03\0\x01\0\0\0\x07\0\x02a\xff")
    assert header.client_id == "a�"


def test_tagged_fields_of_a_request_header_are_skipped() -> None:
    frame = b"\0\x12\0\x03\0\0\0\x01\0\x01c" + b"\x02\x00\x01x\x05\x02yz" + b"body"
    header, position = decode_request_header(frame)
    assert header == RequestHeader(18, 3, 1, "c")
    assert frame[position:] == b"body"


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        (b"", "too short"),
        (b"\0\x03\0\x01\0\0\0\x07\0", "too short"),
        (b"\0\x03\0\x01\0\0\0\x07\0\x05abcd", "claims 5 bytes"),
        (b"\0\x12\0\x03\0\0\0\x07\xff\xff", "too short"),
        (b"\0\x04\0\0\0\0\0\x07\xff\xff", "no API with key 4"),
        (b"\x7f\xff\0\0\0\0\0\x07\xff\xff", "no API with key 32767"),
        (b"\0\x12\0\x03\0\0\0\x07\xff\xff\x80\xda\xc4\x09", "20000000 tagged fields"),
    ],
)
def test_a_broken_request_header_is_refused(frame: bytes, sentence: str) -> None:
    with pytest.raises(ProtocolError, match=sentence):
        decode_request_header(frame)


@given(
    key=st.sampled_from(ApiKey),
    version=st.integers(0, 20),
    correlation_id=st.integers(-(1 << 31), (1 << 31) - 1),
)
def test_a_response_header_is_read_as_it_was_written(
    key: ApiKey, version: int, correlation_id: int
) -> None:
    frame = response_header(key, version, correlation_id)
    is_flexible = version >= FLEXIBLE_SINCE[key] and key != ApiKey.API_VERSIONS
    assert len(frame) == 4 + is_flexible
    assert decode_response_header(frame + b"body", key, version) == (correlation_id, len(frame))


def test_the_response_to_api_versions_never_has_a_flexible_header() -> None:
    assert response_header(ApiKey.API_VERSIONS, 4, 1) == b"\0\0\0\x01"


@pytest.mark.parametrize("frame", [b"", b"\0\0\0", b"\0\0\0\x01"])
def test_a_broken_response_header_is_refused(frame: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_response_header(frame, ApiKey.PRODUCE, 9)
