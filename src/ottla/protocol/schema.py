"""A message class is its own schema: fields say their wire type and the versions that have them.

    @message
    class Request:
        API_KEY: ClassVar = 0
        VERSIONS: ClassVar = range(3, 14)
        FLEXIBLE_SINCE: ClassVar = 9

        transactional_id: str | None = string(nullable=0, default=None)
        topics: list[Topic] = array(Topic)

A struct inside a message bears `@message` too, without the three attributes: it follows the
versions of the message that holds it. Every field has a default, Kafka's. `codec` compiles the
encoders and decoders; here nothing but the shape is made, because several hundred classes are
made at each start: `__init__` is compiled when it is first called, the rest is shared.
"""

# ruff: noqa: ANN401  A field stands for a value of any type, and is made out of any.

from collections.abc import Callable
from typing import Any, Final, TypedDict, TypeVar, Unpack, dataclass_transform

NEVER: Final = 1 << 15  # No version is this high.

# Limits of the classic encoding, which Kafka also applies to the compact one.
STRING_BYTES_MAX: Final = 32_767

FIXED_CODES: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
FIXED_SIZES: Final = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "float64": 8,
    "uuid": 16,
}

ClassT = TypeVar("ClassT", bound=type)


class _Unset:
    """Marks an argument that was not given, where None is a value."""

    def __repr__(self) -> str:
        return "its default"


UNSET: Final = _Unset()


class Options(TypedDict, total=False):
    """Options of every kind of field."""

    since: int
    until: int
    nullable: int | tuple[int, int]  # From this version on, or a range of versions.
    tag: int
    ignorable: bool  # The value may be dropped silently in versions without the field.


class Field:
    """One field: its wire type, and the versions of the message that have it."""

    __slots__ = (
        "default", "ignorable", "kind", "name", "nullable_since", "nullable_until", "of", "since",
        "tag", "until",
    )  # fmt: skip

    def __init__(
        self,
        kind: str,
        default: Any,
        *,
        of: Any = None,  # The class of a struct or of an array's elements, else their kind.
        since: int = 0,
        until: int = NEVER,
        nullable: int | tuple[int, int] | None = None,
        tag: int | None = None,
        ignorable: bool = False,
    ) -> None:
        self.name = ""
        self.kind = kind
        self.of = of
        self.default = default
        self.since = since
        self.until = until
        self.tag = tag
        self.ignorable = ignorable
        if nullable is None:
            self.nullable_since, self.nullable_until = NEVER, NEVER
        elif isinstance(nullable, tuple):
            self.nullable_since, self.nullable_until = nullable
        else:
            self.nullable_since, self.nullable_until = nullable, NEVER

    def is_in(self, version: int) -> bool:
        return self.since <= version <= self.until

    def is_nullable_in(self, version: int) -> bool:
        return self.nullable_since <= version <= self.nullable_until


# These return Any and are not declared as "field specifiers" of the dataclass transform, so a type
# checker takes each call for a default value.


def int8(default: int = 0, **options: Unpack[Options]) -> Any:
    return Field("int8", default, **options)


def int16(default: int = 0, **options: Unpack[Options]) -> Any:
    return Field("int16", default, **options)


def uint16(default: int = 0, **options: Unpack[Options]) -> Any:
    return Field("uint16", default, **options)


def int32(default: int = 0, **options: Unpack[Options]) -> Any:
    return Field("int32", default, **options)


def uint32(default: int = 0, **options: Unpack[Options]) -> Any:
    return Field("uint32", default, **options)


def int64(default: int = 0, **options: Unpack[Options]) -> Any:
    return Field("int64", default, **options)


def float64(default: float = 0.0, **options: Unpack[Options]) -> Any:
    return Field("float64", default, **options)


def boolean(default: bool = False, **options: Unpack[Options]) -> Any:
    return Field("bool", default, **options)


def uuid(**options: Unpack[Options]) -> Any:
    return Field("uuid", bytes(16), **options)


def string(default: str | None = "", **options: Unpack[Options]) -> Any:
    return Field("string", default, **options)


def binary(default: bytes | None = b"", **options: Unpack[Options]) -> Any:
    """Kafka's `bytes`, copied out of the frame."""
    return Field("bytes", default, **options)


def record_batches(default: bytes | None = None, **options: Unpack[Options]) -> Any:
    """Record batches, not copied: a memoryview into the decoded frame."""
    return Field("records", default, **options)


def array(of: type | Callable[..., Any], default: Any = UNSET, **options: Unpack[Options]) -> Any:
    """A list of structs (`array(Topic)`) or of plain values (`array(int32)`)."""
    element = of if isinstance(of, type) else of.__name__
    return Field("array", default, of=element, **options)


def struct(of: type, default: Any = UNSET, **options: Unpack[Options]) -> Any:
    return Field("struct", default, of=of, **options)


@dataclass_transform()
def message(cls: ClassT) -> ClassT:
    """Create a slotted class from the fields, with equality and a repr."""
    namespace = dict(cls.__dict__)
    fields = [value for value in namespace.values() if isinstance(value, Field)]
    names = []
    for name, value in cls.__dict__.items():
        if isinstance(value, Field):
            value.name = name
            names.append(name)
            del namespace[name]
    for name in ("__dict__", "__weakref__"):
        namespace.pop(name, None)
    namespace.update(
        __slots__=tuple(names),
        __match_args__=tuple(names),
        __fields__=tuple(fields),
        __init__=_first_init,
        __eq__=_equal,
        __hash__=None,
        __repr__=_show,
    )
    return type(cls)(cls.__name__, cls.__bases__, namespace)


def fields_of(cls: type) -> tuple[Field, ...]:
    fields: tuple[Field, ...] = cls.__fields__  # type: ignore[attr-defined]
    return fields


def _first_init(self: Any, *args: Any, **kwargs: Any) -> None:
    """Placeholder for `__init__` that replaces itself with the compiled one on the first call."""
    cls = type(self)
    names: dict[str, Any] = {"UNSET": UNSET}
    parameters, body = ["self"], []
    for field in fields_of(cls):
        name = field.name
        names[f"default_{name}"] = field.default
        parameters.append(f"{name}=default_{name}")
        if field.default is UNSET:  # A new list or struct each time.
            names[f"of_{name}"] = field.of
            fresh = "[]" if field.kind == "array" else f"of_{name}()"
            body.append(f" self.{name} = {fresh} if {name} is UNSET else {name}")
        else:
            body.append(f" self.{name} = {name}")
    source = f"def __init__({', '.join(parameters)}):\n" + "\n".join(body or [" pass"])
    exec(source, names)  # noqa: S102  The source is made of the names of our own fields.
    cls.__init__ = names["__init__"]
    cls.__init__(self, *args, **kwargs)


def _equal(self: Any, other: object) -> bool:
    names: tuple[str, ...] = self.__slots__
    return type(self) is type(other) and all(
        getattr(self, name) == getattr(other, name) for name in names
    )


def _show(self: Any) -> str:
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
    return f"{type(self).__name__}({values})"
