"""Every message and version, byte for byte as an independent implementation has it."""

# ruff: noqa: ANN401  What is said here holds for messages of any class.

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema

from ottla.protocol.codec import decode, decode_from, encode
from tests.unit.protocol.kafka_definitions import compare, definition
from tests.unit.protocol.kio_bridge import kio_bytes, kio_entity, limits, to_kio
from tests.unit.protocol.strategies import SETTINGS, Special, api_classes, messages, project

CLASSES = dict(api_classes())


def kio_class(cls: Any, version: int) -> Any:
    load = load_request_schema if cls.__name__ == "Request" else load_response_schema
    return load(cls.API_KEY, version)


@pytest.mark.parametrize("name", CLASSES)
def test_every_version_has_the_bytes_of_an_independent_implementation(name: str) -> None:
    cls: Any = CLASSES[name]
    theirs = {version: kio_class(cls, version) for version in cls.VERSIONS}
    special: Special = {}
    for version, kio_cls in theirs.items():
        limits(cls, kio_cls, version, special)

    @SETTINGS
    @given(message=messages(cls, special))
    def check(message: Any) -> None:
        for version, kio_cls in theirs.items():
            projected = project(message, version)
            entity = to_kio(projected, kio_cls, version)
            data = encode(projected, version)
            assert data == kio_bytes(entity), f"version {version}"
            assert decode(cls, data, version) == projected, f"version {version}"
            assert kio_entity(kio_cls, data) == entity, f"version {version}"

    check()


@pytest.mark.parametrize("name", CLASSES)
def test_defaults_round_trip_in_every_version(name: str) -> None:
    cls: Any = CLASSES[name]
    for version in cls.VERSIONS:
        message = project(cls(), version)
        data = encode(message, version)
        assert decode_from(cls, b"ab" + data + b"trailing", 2, version) == (
            message,
            2 + len(data),
        )


@given(data=st.data())
@settings(SETTINGS, max_examples=40)
def test_all_kinds_of_buffer_decode_alike(data: st.DataObject) -> None:
    cls: Any = CLASSES[data.draw(st.sampled_from(sorted(CLASSES)))]
    version = data.draw(st.sampled_from(cls.VERSIONS))
    message = project(data.draw(messages(cls)), version)
    encoded = encode(message, version)
    assert decode(cls, bytearray(encoded), version) == message
    assert decode(cls, memoryview(encoded), version) == message


@pytest.mark.parametrize("name", CLASSES)
def test_every_message_is_defined_as_kafka_defines_it(name: str) -> None:
    cls: Any = CLASSES[name]
    api, _, part = name.partition("-")
    title = "".join(word.title() for word in api.split("_")) + part
    kafka = definition("kafka-clients", f"common/message/{title}.json")
    assert kafka["apiKey"] == cls.API_KEY
    compare(cls, kafka)
