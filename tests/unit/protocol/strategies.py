"""Hypothesis strategies for messages, derived from the schema of their class."""

# ruff: noqa: ANN401  What is said here holds for messages of any class.

from collections.abc import Iterator
from types import ModuleType
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from ottla.model.errors import ErrorCode
from ottla.protocol.apis import ApiKey, request_class, response_class
from ottla.protocol.schema import NEVER, UNSET, Field, fields_of
from ottla.simulation.clients.breakage import BOUNDS

SETTINGS = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
# Short, long enough for a two-byte length, and outside of ASCII.
TEXTS = st.one_of(
    st.sampled_from(["", "a", "orders", "é\U0001f600", "x" * 126, "x" * 127, "x" * 200]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
)
BYTES = st.one_of(st.sampled_from([b"", b"\0", b"z" * 300]), st.binary(max_size=5))
UUIDS = st.one_of(st.just(bytes(16)), st.binary(min_size=16, max_size=16))

Special = dict[tuple[type, str], st.SearchStrategy[Any]]  # Overrides by class and field.


def api_classes() -> Iterator[tuple[str, type]]:
    """Every request and response class, by a name for the test report."""
    for key in ApiKey:
        try:
            yield f"{key.name}-Request", request_class(key)
            yield f"{key.name}-Response", response_class(key)
        except ModuleNotFoundError:
            continue  # Not implemented yet.


def module_classes(module: ModuleType) -> dict[str, Any]:
    """The top-level messages of a module."""
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and hasattr(value, "VERSIONS")
    }


def messages(cls: type, special: Special | None = None) -> st.SearchStrategy[Any]:
    """Messages with any value in any field; `project` makes them fit a version."""
    special = special or {}
    arguments = {
        field.name: special[key]
        if (key := (cls, field.name)) in special
        else _values(field, special)
        for field in fields_of(cls)
    }
    return st.builds(cls, **arguments)


def project(message: Any, version: int) -> Any:
    """The message with all fields that `version` lacks at their defaults."""
    cls = type(message)
    projected = cls()
    for field in fields_of(cls):
        if field.is_in(version):
            value = _project_value(field, getattr(message, field.name), version)
            setattr(projected, field.name, value)
    return projected


def _project_value(field: Field, value: Any, version: int) -> Any:
    if value is None and not field.is_nullable_in(version):
        return _empty(field)
    if field.kind == "struct" and value is not None:
        return project(value, version)
    if field.kind == "array" and isinstance(field.of, type) and value is not None:
        return [project(element, version) for element in value]
    return value


def _empty(field: Field) -> Any:
    if field.kind == "struct":
        return field.of()
    return {"string": "", "bytes": b"", "records": b"", "array": []}[field.kind]


def _values(field: Field, special: Special) -> st.SearchStrategy[Any]:
    values = _kind_values(field.kind, field, special)
    if field.nullable_since < NEVER:
        values = st.none() | values
    if field.default is not UNSET:
        values = st.one_of(st.just(field.default), values)
    return values


def _kind_values(kind: str, field: Field, special: Special) -> st.SearchStrategy[Any]:
    if kind in BOUNDS:
        if field.name.endswith("error_code"):
            return st.sampled_from([int(code) for code in ErrorCode])
        low, high = BOUNDS[kind]
        return st.sampled_from([low, -1 if low else 0, 0, 1, high]) | st.integers(low, high)
    if kind == "array":
        if isinstance(field.of, type):
            return st.lists(messages(field.of, special), max_size=2)
        return st.lists(_kind_values(field.of, Field(field.of, None), special), max_size=3)
    if kind == "struct":
        return messages(field.of, special)
    simple: dict[str, st.SearchStrategy[Any]] = {
        "bool": st.booleans(),
        "float64": st.floats(allow_nan=False, allow_infinity=False),
        "uuid": UUIDS,
        "string": TEXTS,
        "bytes": BYTES,
        "records": BYTES,
    }
    return simple[kind]
