"""A single record as text: a user's, a control record, or a metadata record."""

from ottla.cli.tasks.timestamps import show_moment
from ottla.cli.views.terminal import as_json, escaped
from ottla.model.errors import ProtocolError
from ottla.model.types import uuid_text
from ottla.protocol.control_records import decode_control
from ottla.protocol.metadata_records import decode_record
from ottla.protocol.schema import Field, fields_of
from ottla.records.record import Record

Told = tuple[str, dict[str, object]]  # For a person, and for a program.


def plain_text(record: Record) -> str:
    parts = [f"{record.offset}", show_moment(record.timestamp)]
    parts.append(f"key {_bytes(record.key)}")
    parts.append(f"value {_bytes(record.value)}")
    if record.headers:
        headers = ", ".join(f"{name}={_bytes(value)}" for name, value in record.headers)
        parts.append(f"headers {headers}")
    return "  ".join(parts)


def plain_json(record: Record) -> dict[str, object]:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        **as_json("key", record.key),
        **as_json("value", record.value),
        "headers": [{"name": name, **as_json("value", value)} for name, value in record.headers],
    }


def control_text(record: Record) -> Told:
    decoded = decode_control(record.key or b"", record.value or b"")
    if decoded is None:
        return f"{record.offset}  a control record from the future", plain_json(record)
    kind, control = decoded
    return _told(record, kind.name, control)


def metadata_text(record: Record) -> Told:
    if record.value is None:
        raise ProtocolError(f"the metadata record at offset {record.offset} has no value")
    decoded = decode_record(record.value)
    return _told(record, type(decoded).__name__.removesuffix("Record"), decoded)


def _told(record: Record, name: str, content: object) -> Told:
    fields = message_fields(content)
    words = [f"{key}={_word(value)}" for key, value in fields.items() if value not in (None, [])]
    shown: dict[str, object] = {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "type": name,
        "fields": fields,
    }
    return "  ".join([str(record.offset), name, *words]), shown


def message_fields(content: object) -> dict[str, object]:
    """A message as names and plain values; ids in Kafka's text form."""
    return {
        field.name: _plain(field, getattr(content, field.name))
        for field in fields_of(type(content))
    }


def _plain(field: Field, value: object) -> object:
    is_id = field.kind == "uuid" or (field.kind == "array" and field.of == "uuid")
    return _plain_value(value, is_id=is_id)


def _plain_value(value: object, *, is_id: bool) -> object:
    if isinstance(value, list):
        return [_plain_value(item, is_id=is_id) for item in value]
    if isinstance(value, bytes):
        return uuid_text(value) if is_id else value.hex()
    if hasattr(type(value), "__fields__"):
        return message_fields(value)
    return value


def _word(value: object) -> str:
    if isinstance(value, dict):
        return "(" + " ".join(f"{key}={_word(item)}" for key, item in value.items()) + ")"
    if isinstance(value, list):
        return "[" + ", ".join(_word(item) for item in value) + "]"
    return str(value)


def _bytes(data: bytes | None) -> str:
    return "null" if data is None else escaped(data).decode()
