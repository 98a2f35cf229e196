"""Generates the source of a decoder: straight-line Python for one message class and one version.

Adjacent fixed-size fields are read with one `struct` call, and nested structs are inlined, so that
a decoder is one function without calls on the usual path. Values chosen by a peer are checked
before anything is allocated: a count against the remaining bytes and the element budget, a length
against the end of the buffer.
"""

from collections.abc import Callable
from struct import Struct, unpack_from
from typing import Any, Final, NoReturn

from ottla.model.errors import TooManyElements
from ottla.protocol import varint
from ottla.protocol.schema import (
    FIXED_CODES,
    FIXED_SIZES,
    STRING_BYTES_MAX,
    UNSET,
    Field,
    fields_of,
)

# Limit of the elements of all arrays of one message, and of tagged fields: enough for the metadata
# of 250,000 partitions with three replicas each. Requests have lower limits
# (`broker.request_budget`).
ELEMENTS_MAX: Final = 2_000_000
REPLACEMENT_BYTES: Final = 3  # Of U+FFFD, which may replace a single byte.
BYTES_PER_ELEMENT: Final = 1024  # A long string counts as several elements.

Decoder = Callable[[varint.Buffer, int, int], tuple[Any, int]]


def compile_decoder(cls: type, version: int, flexible: bool) -> Decoder:
    writer = _Writer(version, flexible)
    writer.message(cls)
    source = "\n".join(writer.lines)
    exec(source, writer.names)  # noqa: S102  The source is made of the names of our own fields.
    decoder: Decoder = writer.names["decode"]
    return decoder


def smallest_size(cls: type, version: int, flexible: bool) -> int:
    """Minimum size of an encoded struct; bounds the count that fits the remaining bytes."""
    size = 1 if flexible else 0
    for field in fields_of(cls):
        if field.is_in(version) and field.tag is None:
            size += _smallest_field(field, version, flexible)
    return max(size, 1)


def _smallest_field(field: Field, version: int, flexible: bool) -> int:
    if field.kind in FIXED_SIZES:
        return FIXED_SIZES[field.kind]
    if field.kind == "struct":
        if field.is_nullable_in(version):
            return 1
        return smallest_size(field.of, version, flexible)
    if flexible:
        return 1
    return 2 if field.kind == "string" else 4


class _Writer:
    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.names: dict[str, Any] = {
            "new": object.__new__,
            "unpack_from": unpack_from,
            "finish": varint.finish_uvarint,
            "skip_tags": varint.skip_tags,
            "read_tag": varint.read_tag,
            "check_tag_count": varint.check_tag_count,
            "short": _short,
            "long": _long,
            "fits": _check_fits,
            "null": _null,
            "many": _many,
            "uneven": _uneven,
        }
        self.lines: list[str] = []
        self.indent = 1
        self._run: list[tuple[str, str]] = []  # Pending fixed-size fields: target and kind.
        self._variables = 0

    def message(self, cls: type) -> None:
        self.lines.append("def decode(buffer, position, left):")
        self.write("end = len(buffer)")
        self.struct(cls, "o", cls.__name__)
        self.write("return o, position")

    def write(self, line: str) -> None:
        self.lines.append(" " * self.indent + line)

    def variable(self, prefix: str) -> str:
        """A unique name, since all structs are inlined into one function."""
        self._variables += 1
        return f"{prefix}{self._variables}"

    def name(self, value: object, prefix: str) -> str:
        for known, held in self.names.items():
            if held is value:
                return known
        name = f"{prefix}{len(self.names)}"
        self.names[name] = value
        return name

    def struct(self, cls: type, target: str, path: str) -> None:
        self.write(f"{target} = new({self.name(cls, cls.__name__)})")
        tagged = []
        for field in fields_of(cls):
            if not field.is_in(self.version):
                self.default(field, target)
            elif field.tag is not None:
                self.default(field, target)
                tagged.append(field)
            else:
                self.field(field, f"{target}.{field.name}", f"{path}.{field.name}")
        self.flush()
        if self.flexible:
            self.tags(tagged, target, path)

    def default(self, field: Field, target: str) -> None:
        if field.default is not UNSET:
            value = self.name(field.default, "default") if field.kind == "uuid" else None
            self.write(f"{target}.{field.name} = {value or repr(field.default)}")
        elif field.kind == "array":
            self.write(f"{target}.{field.name} = []")
        else:
            self.write(f"{target}.{field.name} = {self.name(field.of, field.of.__name__)}()")

    def field(self, field: Field, target: str, path: str) -> None:
        if field.kind in FIXED_CODES:
            self._run.append((target, field.kind))
            return
        nullable = field.is_nullable_in(self.version)
        if field.kind == "struct":
            self.inner_struct(field, target, path, nullable)
            return
        self.length("int16" if field.kind == "string" else "int32", path)
        self.write("if n >= 0:")
        self.indent += 1
        if field.kind == "array":
            self.array(field.of, target, path)
        else:
            self.span(field.kind, target, path)
        self.indent -= 1
        self.write("else:")
        self.write(f" {target} = None" if nullable else f" null({path!r})")

    def length(self, classic_kind: str, path: str) -> None:
        """Set `n` to the next length or count, -1 for null."""
        if not self.flexible:
            self._run.append(("n", classic_kind))
            self.flush()
            return
        self.flush()
        self.write("n = buffer[position] - 1")
        self.write("position += 1")
        self.write("if n > 126:")
        self.write(" n, position = finish(buffer, position, n + 1)")
        self.write(" n -= 1")
        if classic_kind == "int16":
            self.write(f" if n > {STRING_BYTES_MAX}: long({path!r}, n)")

    def span(self, kind: str, target: str, path: str) -> None:
        """A string or bytes of `n` bytes."""
        self.write("stop = position + n")
        self.write("if stop > end:")
        self.write(f" short({path!r}, n, end - position)")
        if kind == "string":  # Invalid UTF-8 becomes U+FFFD, as in Kafka.
            read = f"{target} = str(buffer[position:stop], 'utf-8', 'replace')"
            self.write(f"if n < {BYTES_PER_ELEMENT}: {read}")
            self.write("else:")
            self.write(f" left -= n // {BYTES_PER_ELEMENT}")
            self.write(f" if left < 0: many({path!r}, n, end - position)")
            self.write(f" {read}")
            self.write(f" if n > {STRING_BYTES_MAX // REPLACEMENT_BYTES}: fits({path!r}, {target})")
        elif kind == "bytes":
            self.write(f"{target} = bytes(buffer[position:stop])")
        else:
            self.write(f"{target} = memoryview(buffer)[position:stop]")
        self.write("position = stop")

    def array(self, of: type | str, target: str, path: str) -> None:
        """A list of `n` elements."""
        if isinstance(of, str) and of in FIXED_CODES:
            self.fixed_array(of, target, path)
            return
        smallest = self.smallest_element(of)
        items, item = self.variable("items"), self.variable("item")
        self.write("left -= n")
        self.write(f"if left < 0 or n > (end - position) // {smallest}:")
        self.write(f" many({path!r}, n, end - position)")
        self.write(f"{items} = {target} = []")
        self.write("for _ in range(n):")
        self.indent += 1
        if isinstance(of, str):
            self.field(Field(of, None), item, path)
        else:
            self.struct(of, item, path)
        self.write(f"{items}.append({item})")
        self.indent -= 1

    def smallest_element(self, of: type | str) -> int:
        if isinstance(of, str):
            return _smallest_field(Field(of, None), self.version, self.flexible)
        return smallest_size(of, self.version, self.flexible)

    def fixed_array(self, kind: str, target: str, path: str) -> None:
        size = FIXED_SIZES[kind]
        self.write("left -= n")
        self.write(f"stop = position + n * {size}")
        self.write("if left < 0 or stop > end:")
        self.write(f" many({path!r}, n, end - position)")
        if kind == "uuid":
            self.write(
                f"{target} = [bytes(buffer[at:at + 16]) for at in range(position, stop, 16)]"
            )
        else:
            code = f"f'>{{n}}{FIXED_CODES[kind]}'"
            self.write(f"{target} = list(unpack_from({code}, buffer, position)) if n else []")
        self.write("position = stop")

    def inner_struct(self, field: Field, target: str, path: str, nullable: bool) -> None:
        name = self.variable("item")
        if nullable:
            self._run.append(("n", "int8"))
            self.flush()
            is_null = "n < 0" if field.tag is None else "n == 0"
            self.write(f"if {is_null}: {target} = None")
            self.write("else:")
            self.indent += 1
        self.flush()
        self.struct(field.of, name, path)
        self.write(f"{target} = {name}")
        self.indent -= nullable

    def tags(self, tagged: list[Field], target: str, path: str) -> None:
        self.write("n = buffer[position]")
        self.write("position += 1")
        self.write("if n:")
        self.indent += 1
        self.write("left -= n")
        self.write(f"if left < 0: many({path!r}, n, end - position)")
        if not tagged:
            self.write("position = skip_tags(buffer, position, end, n)")
            self.indent -= 1
            return
        self.write("if n > 127: n, position = finish(buffer, position, n)")
        self.write("check_tag_count(n)")
        stop = self.variable("stop")
        self.write("for _ in range(n):")
        self.indent += 1
        self.write(f"tag, position, {stop} = read_tag(buffer, position, end)")
        for field in tagged:
            field_path = f"{path}.{field.name}"
            self.write(f"if tag == {field.tag}:")
            self.indent += 1
            self.field(field, f"{target}.{field.name}", field_path)
            self.flush()
            self.write(f"if position != {stop}: uneven({field_path!r})")
            self.write("continue")
            self.indent -= 1
        self.write(f"position = {stop}")
        self.indent -= 2

    def flush(self) -> None:
        """Read the pending fixed-size fields with one call."""
        if not self._run:
            return
        layout = Struct(">" + "".join(FIXED_CODES[kind] for _, kind in self._run))
        unpack = f"unpack{len(self.names)}"
        self.names[unpack] = layout.unpack_from
        targets = ", ".join(target for target, _ in self._run)
        self.write(f"{targets}, = {unpack}(buffer, position)")
        self.write(f"position += {layout.size}")
        self._run = []


def _short(path: str, size: int, remaining: int) -> NoReturn:
    varint.fail(path, f"claims {size} bytes where {remaining} remain")


def _long(path: str, size: int) -> NoReturn:
    varint.fail(path, f"has {size} bytes, more than {STRING_BYTES_MAX}")


def _check_fits(path: str, text: str) -> None:
    """Refuse a string that grows too long by replacements; Kafka accepts it, and cannot encode
    it.
    """
    size = len(text.encode())
    if size > STRING_BYTES_MAX:
        varint.fail(path, f"is not UTF-8, and has {size} bytes as such")


def _many(path: str, count: int, remaining: int) -> NoReturn:
    raise TooManyElements(f"{path} claims {count} elements where {remaining} bytes remain")


def _null(path: str) -> NoReturn:
    varint.fail(path, "is null, which this version does not allow")


def _uneven(path: str) -> NoReturn:
    varint.fail(path, "does not fill the size of its tag")
