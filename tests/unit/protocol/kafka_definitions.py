"""Comparison of our classes with Kafka's own message definitions (JSON inside its jars).

The jars are in the directory OTTLA_KAFKA_LIBS; without them the comparison is skipped, except in
CI, where it is required.
"""

# ruff: noqa: ANN401  What is said here holds for messages of any class.

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from ottla.protocol.schema import NEVER, UNSET, Field, fields_of

LIBS = Path(os.environ.get("OTTLA_KAFKA_LIBS", Path.home() / ".cache" / "kafka-4.3.1"))


def definition(jar: str, path: str) -> dict[str, Any]:
    """The definition at `path` of the jar whose name starts with `jar`."""
    return definitions(jar, path)[path]


def definitions(jar: str, prefix: str) -> dict[str, dict[str, Any]]:
    """All definitions of a jar whose paths start with `prefix`, by path."""
    found = sorted(LIBS.glob(f"{jar}-[0-9]*.jar"))
    if not found:
        why = f"no {jar} jar of Apache Kafka in {LIBS}; OTTLA_KAFKA_LIBS can name another place"
        pytest.fail(why) if os.environ.get("CI") else pytest.skip(why)
    return {path: one for path, one in _read(found[0]).items() if path.startswith(prefix)}


@cache
def _read(jar: Path) -> dict[str, dict[str, Any]]:
    with ZipFile(jar) as archive:
        return {
            name: json.loads(re.sub(r"^\s*//.*$", "", archive.read(name).decode(), flags=re.M))
            for name in archive.namelist()
            if name.startswith("common/me") and name.endswith(".json")
        }


def compare(cls: Any, kafka: dict[str, Any]) -> None:
    """Fail at the first difference between our class and Kafka's definition."""
    low, high = _range(kafka["validVersions"])
    assert range(low, high + 1) == cls.VERSIONS, "versions"
    flexible_since, _ = _range(kafka["flexibleVersions"])
    for version in cls.VERSIONS:
        is_flexible = version >= flexible_since
        assert is_flexible == (version >= cls.FLEXIBLE_SINCE), f"flexible in version {version}"
        structs = {struct["name"]: struct["fields"] for struct in kafka.get("commonStructs", [])}
        _compare_fields(cls, kafka["fields"], version, structs, cls.__name__)


def _compare_fields(
    cls: type, kafka: list[dict[str, Any]], version: int, structs: dict[str, Any], path: str
) -> None:
    ours = {field.name: field for field in fields_of(cls)}
    assert list(ours) == [snake(field["name"]) for field in kafka], f"fields of {path}"
    for theirs in kafka:
        our = ours[snake(theirs["name"])]
        where = f"{path}.{our.name} v{version}"
        first, last = _range(theirs["versions"])
        assert our.is_in(version) == (first <= version <= last), f"presence of {where}"
        assert our.ignorable == theirs.get("ignorable", False), f"ignorable {where}"
        assert _default(our) == _kafka_default(theirs), f"default of {where}"
        if not our.is_in(version):
            continue
        first, last = _range(theirs.get("nullableVersions", "none"))
        assert our.is_nullable_in(version) == (first <= version <= last), f"nullable {where}"
        first, last = _range(theirs.get("taggedVersions", "none"))
        tag = theirs["tag"] if first <= version <= last else None
        assert our.tag == tag, f"tag of {where}"
        element = theirs["type"].removeprefix("[]")
        assert _type(our, element) == theirs["type"], f"type of {where}"
        if element[0].isupper():
            inner = theirs.get("fields") or structs[element]
            _compare_fields(our.of, inner, version, structs, f"{path}.{our.name}")


def snake(name: str) -> str:
    name = name.replace("KRaft", "Kraft")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _range(text: str) -> tuple[int, int]:
    if text == "none":
        return NEVER, NEVER - 1
    if text.endswith("+"):
        return int(text[:-1]), NEVER - 1
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def _type(field: Field, element: str) -> str:
    if field.kind not in ("array", "struct"):
        return field.kind
    name = field.of
    if isinstance(name, type):
        # We use different names for two structs that Kafka names alike.
        assert name.__name__.endswith(element), f"{name} stands for {element}"
        name = element
    return f"[]{name}" if field.kind == "array" else name


def _default(field: Field) -> Any:
    if field.default is not UNSET:
        return field.default
    return [] if field.kind == "array" else "a fresh struct"


def _kafka_default(field: dict[str, Any]) -> Any:
    kind, text = field["type"], str(field.get("default", ""))
    if text == "null":
        return None
    if kind.startswith("[]"):
        return []
    if kind[0].isupper():
        return "a fresh struct"
    if kind == "records":  # Kafka's own default is null even where null cannot be written.
        return None if "nullableVersions" in field else b""
    plain: dict[str, Any] = {"string": text, "bytes": b"", "uuid": bytes(16)}
    if kind in plain:
        return plain[kind]
    if kind == "bool":
        return text.lower() == "true"
    return float(text or 0) if kind == "float64" else int(text or "0", 0)
