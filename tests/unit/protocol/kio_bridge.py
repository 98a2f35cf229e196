"""Conversion of our messages to those of `kio`, an independent implementation.

kio has a class for each version, and its own types: a zero id is None, milliseconds are timedeltas
or datetimes, error codes are an enum.
"""

# ruff: noqa: ANN401  What is said here holds for messages of any class.

from dataclasses import fields as kio_fields
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.serial import entity_reader, entity_writer
from kio.serial._introspect import classify_field

from ottla.protocol.schema import Field, fields_of
from tests.unit.protocol.strategies import Special

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECONDS_MAX = 253_402_300_799  # The end of year 9999.
LIMITED = {
    # Whole seconds, because kio converts through floats and is otherwise a microsecond off.
    "datetime_i64": st.integers(0, SECONDS_MAX).map(lambda seconds: seconds * 1000),
    "timedelta_i64": st.integers(-(10**12), 10**12),
}


def pairs(cls: type, kio_cls: Any, version: int) -> list[tuple[Field, Any]]:
    """Our fields of that version paired with kio's, both in schema order."""
    ours = [field for field in fields_of(cls) if field.is_in(version)]
    theirs = list(kio_fields(kio_cls))
    assert len(ours) == len(theirs), f"{cls} v{version} has other fields than {kio_cls}"
    for our, their in zip(ours, theirs, strict=True):
        assert _plain(our.name) == _plain(their.name), f"{cls} v{version} {our.name}"
    return list(zip(ours, theirs, strict=True))


def _plain(name: str) -> str:
    return name.removesuffix("_ms").replace("_", "").rstrip("_")


def limits(cls: type, kio_cls: Any, version: int, special: Special) -> None:
    """Collect the fields whose values kio cannot all represent, with the values that it can."""
    for our, their in pairs(cls, kio_cls, version):
        if our.kind == "struct" or (our.kind == "array" and isinstance(our.of, type)):
            limits(our.of, classify_field(their).type_, version, special)
        elif (kind := their.metadata.get("kafka_type")) in LIMITED:
            special[cls, our.name] = LIMITED[kind]


def to_kio(message: Any, kio_cls: Any, version: int) -> Any:
    values = {}
    for our, their in pairs(type(message), kio_cls, version):
        value = getattr(message, our.name)
        if our.kind == "struct":
            inner = classify_field(their).type_
            values[their.name] = None if value is None else to_kio(value, inner, version)
        elif our.kind == "array" and isinstance(our.of, type):
            inner = classify_field(their).type_
            values[their.name] = (
                None if value is None else tuple(to_kio(one, inner, version) for one in value)
            )
        elif our.kind == "array":
            kind = their.metadata["kafka_type"]
            values[their.name] = (
                None if value is None else tuple(_value(kind, one) for one in value)
            )
        else:
            values[their.name] = _value(their.metadata["kafka_type"], value)
    return kio_cls(**values)


def _value(kind: str, value: Any) -> Any:
    if value is None:
        return None
    if kind == "uuid":
        return None if value == bytes(16) else UUID(bytes=bytes(value))
    if kind == "error_code":
        return KioErrorCode(value)
    if kind.startswith("timedelta"):
        return timedelta(milliseconds=value)
    if kind == "datetime_i64":
        return None if value == -1 else EPOCH + timedelta(milliseconds=value)
    return value


def kio_bytes(entity: Any) -> bytes:
    out = BytesIO()
    entity_writer(type(entity))(out, entity)
    return out.getvalue()


def kio_entity(kio_cls: Any, data: bytes) -> Any:
    return entity_reader(kio_cls)(data, 0)[0]
