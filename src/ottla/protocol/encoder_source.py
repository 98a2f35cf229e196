"""Generates the source of an encoder: straight-line Python for one message class and one
version.
"""

from collections.abc import Callable, Iterator
from struct import Struct, pack
from struct import error as struct_error
from typing import Any, Final, NoReturn

from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol import varint
from ottla.protocol.schema import FIXED_CODES, STRING_BYTES_MAX, UNSET, Field, fields_of

Encoder = Callable[[Any, bytearray], None]
SteppingEncoder = Callable[[Any, bytearray], Iterator[None]]

STEP: Final = 500  # Structs of arrays per step; each takes a few microseconds.


def compile_encoder(cls: type, version: int, flexible: bool) -> Encoder:
    encoder: Encoder = _compiled(_Writer(cls, version, flexible), cls)
    return encoder


def compile_stepping_encoder(cls: type, version: int, flexible: bool) -> SteppingEncoder:
    """The same with a pause after every `STEP` structs."""
    writer = _Writer(cls, version, flexible)
    writer.is_stepping = True
    encoder: SteppingEncoder = _compiled(writer, cls)
    return encoder


def _compiled(writer: "_Writer", cls: type) -> Any:  # noqa: ANN401
    writer.lines.append("def encode(o, out):")
    if writer.is_stepping:
        writer.write(f"left = {STEP}")
        writer.write("if not left: yield")  # Makes it a generator even without arrays.
    writer.struct(cls, "o", cls.__name__)
    writer.flush()
    writer.write("return")
    source = "\n".join(writer.lines)
    exec(source, writer.names)  # noqa: S102  The source is made of the names of our own fields.
    return writer.names["encode"]


class _Writer:
    def __init__(self, cls: type, version: int, flexible: bool) -> None:
        self.is_stepping = False
        self.version = version
        self.flexible = flexible
        self.names: dict[str, Any] = {
            "pack": pack,
            "append_uvarint": varint.append_uvarint,
            "append_tags": varint.append_tags,
            "absent": _absent(cls, version),
            "long": _long,
        }
        self.lines: list[str] = []
        self.indent = 1
        self.out = "out"  # Output variable: the message, or the value of a tagged field.
        self._run: list[tuple[str, str]] = []  # Pending fixed-size fields: value and kind.
        self._variables = 0

    def write(self, line: str) -> None:
        self.lines.append(" " * self.indent + line)

    def variable(self, prefix: str) -> str:
        """A unique name, since all structs are inlined into one function."""
        self._variables += 1
        return f"{prefix}{self._variables}"

    def struct(self, cls: type, source: str, path: str) -> None:
        tagged = []
        for field in fields_of(cls):
            value, field_path = f"{source}.{field.name}", f"{path}.{field.name}"
            if not field.is_in(self.version):
                if not field.ignorable:
                    self.write(f"if {self.differs(field, value)}: absent({field_path!r})")
            elif field.tag is not None:
                tagged.append(field)
            else:
                self.field(field, value, field_path)
        if self.flexible:
            self.flush()
            self.tags(tagged, source, path)

    def differs(self, field: Field, value: str) -> str:
        """Condition under which the field differs from its default."""
        if field.default is None:
            return f"{value} is not None"
        if field.default is not UNSET:
            return f"{value} != {field.default!r}"
        if field.kind == "array":
            return f"{value} is None or len({value})"
        # Field by field, since creating a struct to compare with would cost more than the rest.
        inner = [self.differs(inner, f"{value}.{inner.name}") for inner in fields_of(field.of)]
        null = [f"{value} is None"] if field.is_nullable_in(self.version) else []
        return " or ".join([*null, *inner])

    def field(self, field: Field, value: str, path: str) -> None:
        if field.kind in FIXED_CODES:
            self._run.append((value, field.kind))
            return
        nullable = field.is_nullable_in(self.version)
        if field.kind == "struct":
            self.inner_struct(field, value, path, nullable)
            return
        name = self.variable("value")
        self.write(f"{name} = {value}")
        if nullable:
            self.flush()
            self.write(f"if {name} is None: {self.out} += {self.null_length(field.kind)!r}")
            self.write("else:")
            self.indent += 1
        if field.kind == "array":
            self.array(field.of, name, path)
        else:
            self.span(f"{name}.encode()" if field.kind == "string" else name, field.kind)
        self.indent -= nullable

    def null_length(self, kind: str) -> bytes:
        if self.flexible:
            return b"\0"
        return b"\xff\xff" if kind == "string" else b"\xff\xff\xff\xff"

    def span(self, value: str, kind: str) -> None:
        self.write(f"b = {value}")
        self.length("len(b)", "int16" if kind == "string" else "int32")
        self.write(f"{self.out} += b")

    def length(self, count: str, classic_kind: str) -> None:
        if not self.flexible:
            self._run.append((count, classic_kind))
            self.flush()
            return
        self.flush()
        self.write(f"n = {count} + 1")
        self.write(f"if n < 128: {self.out}.append(n)")
        self.write("else:")
        if classic_kind == "int16":  # A longer string could not be read.
            self.write(f" if n > {STRING_BYTES_MAX + 1}: long(n - 1)")
        self.write(f" append_uvarint({self.out}, n)")

    def array(self, of: type | str, value: str, path: str) -> None:
        self.length(f"len({value})", "int32")
        if isinstance(of, str) and of in FIXED_CODES:
            if of == "uuid":
                self.write(f"{self.out} += b''.join({value})")
            else:
                code = f"f'>{{len({value})}}{FIXED_CODES[of]}'"
                self.write(f"{self.out} += pack({code}, *{value})")
            return
        item = self.variable("item")
        self.write(f"for {item} in {value}:")
        self.indent += 1
        if isinstance(of, str):
            self.field(Field(of, None), item, path)
        else:
            before = len(self.lines)
            self.struct(of, item, path)
            self.flush()
            if self.is_stepping:
                self.write("left -= 1")
                self.write("if not left:")
                self.write(f" left = {STEP}")
                self.write(" yield")
            elif len(self.lines) == before:
                self.write("pass")
        self.indent -= 1

    def inner_struct(self, field: Field, value: str, path: str, nullable: bool) -> None:
        name = self.variable("item")
        self.write(f"{name} = {value}")
        if nullable:
            self.flush()
            null = b"\xff" if field.tag is None else b"\0"  # Kafka writes a varint after a tag.
            self.write(f"if {name} is None: {self.out} += {null!r}")
            self.write("else:")
            self.indent += 1
            self.write(f"{self.out} += b'\\1'")
        self.struct(field.of, name, path)
        if nullable:
            self.flush()
            self.indent -= 1

    def tags(self, tagged: list[Field], source: str, path: str) -> None:
        """Write tagged fields that differ from their defaults, in tag order."""
        if not tagged:
            self.write(f"{self.out}.append(0)")
            return
        outer, self.out = self.out, self.variable("out")
        tags = self.variable("tags")
        self.write(f"{tags} = []")
        for field in sorted(tagged, key=lambda field: field.tag or 0):
            value = f"{source}.{field.name}"
            self.write(f"if {self.differs(field, value)}:")
            self.indent += 1
            self.write(f"{self.out} = bytearray()")
            self.field(field, value, f"{path}.{field.name}")
            self.flush()
            self.write(f"{tags}.append(({field.tag}, {self.out}))")
            self.indent -= 1
        self.out = outer
        self.write(f"if {tags}: append_tags({self.out}, {tags})")
        self.write(f"else: {self.out}.append(0)")

    def flush(self) -> None:
        """Write the pending fixed-size fields with one call."""
        if not self._run:
            return
        layout = Struct(">" + "".join(FIXED_CODES[kind] for _, kind in self._run))
        packer = f"pack{len(self.names)}"
        self.names[packer] = layout.pack
        values = ", ".join(value for value, _ in self._run)
        self.write(f"{self.out} += {packer}({values})")
        self._run = []


def _long(size: int) -> NoReturn:
    """Raise the same error as for a length that does not fit the classic encoding."""
    raise struct_error(f"a string of {size} bytes is longer than {STRING_BYTES_MAX}")


def _absent(cls: type, version: int) -> Callable[[str], NoReturn]:
    def absent(path: str) -> NoReturn:
        message = f"version {version} of {cls.__module__} has no place for {path}"
        raise Refusal(ErrorCode.UNSUPPORTED_VERSION, message)

    return absent
