"""What one config is: its name, type, default, bounds, importance, and what Ottla makes of it.

Definitions are written as text tables, one module per subject, in this form:

    name type default check importance service update
        One sentence of documentation.

A row may be broken anywhere; the documentation is its last line. `default` is the text a user
would write, or `null`, `required`, or `""`. `check` is one of

    any   >=1   0..1   -1|1..9   {a,b}   i{A,B} (in any case)   non-empty   throttled

Values are parsed and printed as Apache Kafka does it, since both cross the wire as text.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from math import isfinite

from ottla.model.numbers import parse_integer

Value = bool | int | float | str | list[str] | None


class ConfigType(Enum):
    """The types of a config, with the numbers that DescribeConfigs uses for them."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Service(Enum):
    """How Ottla treats a config of Kafka's."""

    SERVED = "served"
    IRRELEVANT = "irrelevant"  # Accepted, without effect; listed once at start.
    NOT_BUILT = "not-built"  # Refused unless it asks for the default.


class Update(Enum):
    """The scope in which a config can be changed while the broker runs."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"
    TOPIC = "topic"
    GROUP = "group"


class ConfigValueError(ValueError):
    """A value that its config does not allow; the message says what is allowed."""


@dataclass(frozen=True, slots=True)
class Definition:
    name: str
    type: ConfigType
    default: str | None
    check: str
    importance: str
    service: Service
    update: Update
    documentation: str
    is_required: bool = False
    is_internal: bool = False

    @property
    def is_sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    def parse(self, text: str | None) -> Value:
        """The typed value of `text`; raises ConfigValueError if it is not allowed."""
        if text is None:
            return None
        value = _typed(self.type, text.strip())
        _checked(self.check, value)
        return value

    def default_value(self) -> Value:
        return self.parse(self.default)


def parse_table(table: str) -> tuple[Definition, ...]:
    """The definitions of a text table in the form shown above."""
    return tuple(_definition(row) for row in _rows(table))


def as_text(value: Value) -> str | None:
    """A value as Kafka prints it."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case float():
            return _java_double(value)
        case list():
            return ",".join(value)
        case _:
            return str(value)


def _rows(table: str) -> Iterator[list[str]]:
    row: list[str] = []
    for line in table.strip().splitlines():
        if not line.startswith(" ") and row:
            yield row
            row = []
        row.append(line.strip())
    yield row


def _definition(row: list[str]) -> Definition:
    words = " ".join(row[:-1]).split()
    name, type_name, default, check, importance, service, update, *flags = words
    return Definition(
        name=name,
        type=ConfigType[type_name.upper()],
        default={"null": None, "required": None, '""': ""}.get(default, default),
        check=check,
        importance=importance,
        service=Service(service),
        update=Update(update),
        documentation=row[-1],
        is_required=default == "required",
        is_internal="internal" in flags,
    )


_INTEGER_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}


def _typed(kind: ConfigType, text: str) -> Value:
    if kind in _INTEGER_BITS:
        return _integer(text, _INTEGER_BITS[kind])
    if kind is ConfigType.BOOLEAN:
        if text.lower() not in ("true", "false"):
            raise ConfigValueError("must be true or false")
        return text.lower() == "true"
    if kind is ConfigType.DOUBLE:
        return _double(text)
    if kind is ConfigType.LIST:
        # Duplicates are removed.
        return list(dict.fromkeys(item.strip() for item in text.split(","))) if text else []
    return text


def _double(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ConfigValueError("must be a number") from None
    if not isfinite(value):
        raise ConfigValueError("must be a finite number")
    return value


def _integer(text: str, bits: int) -> int:
    try:
        return parse_integer(text, bits)
    except ValueError as error:
        raise ConfigValueError(str(error)) from None


def _checked(check: str, value: Value) -> None:
    match value:
        case bool():
            return
        case int() | float():
            _check_number(check, value)
        case list():
            if check.startswith("{"):
                _check_list(check[1:-1].split(","), value)
            elif check == "throttled":
                _check_throttled(value)
        case str():
            _check_string(check, value)


def _check_number(check: str, value: float) -> None:
    if check == "any":
        return
    if check.startswith(">="):
        if value < float(check[2:]):
            raise ConfigValueError(f"must be at least {check[2:]}")
        return
    extra, _, bounds = check.rpartition("|")
    low, high = bounds.split("..")
    if extra and value == float(extra):
        return
    if not float(low) <= value <= float(high):
        either = f"{extra} or " if extra else ""
        raise ConfigValueError(f"must be {either}between {low} and {high}")


def _check_string(check: str, value: str) -> None:
    if check == "non-empty" and not value:
        raise ConfigValueError("must not be empty")
    ignore_case = check.startswith("i{")
    if not (ignore_case or check.startswith("{")):
        return
    allowed = check[check.index("{") + 1 : -1].split(",")
    if (value.upper() if ignore_case else value) not in allowed:
        raise ConfigValueError(f"must be one of {', '.join(allowed)}")


def _check_list(allowed: list[str], items: list[str]) -> None:
    for item in items:
        if item not in allowed:
            raise ConfigValueError(f"may only list {', '.join(allowed)}")


def _check_throttled(items: list[str]) -> None:
    if items == ["*"]:
        return
    for item in items:
        partition, colon, node = item.partition(":")
        if not (colon and partition.isdigit() and node.isdigit()):
            raise ConfigValueError("must be * or a list of partition:broker pairs")


def _java_double(value: float) -> str:
    """A double as Java prints it: plain from 0.001 up to ten million, else with an exponent."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    from decimal import Decimal  # Slow to import, and rarely needed.

    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int), "infinities and not-a-number are no config values"
    fraction = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{fraction}E{exponent + len(digits) - 1}"
