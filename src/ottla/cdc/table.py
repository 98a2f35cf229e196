"""A table as written to its topic: key columns, and rows as JSON."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

from ottla.cdc.json_text import Types, quoted
from ottla.cdc.pgoutput import Row

NAME_CHARACTERS_MAX = 249
_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9._-]")


class TableName(NamedTuple):
    schema: str
    name: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def quoted(self) -> str:
        """The quoted SQL name."""
        return f"{identifier(self.schema)}.{identifier(self.name)}"


class Field(NamedTuple):
    name: str
    type_id: int


class Table:
    def __init__(
        self,
        name: TableName,
        topic: str,
        fields: Iterable[Field],
        key: Sequence[str],
        types: Types,
    ) -> None:
        """`key` names the key columns, in table order."""
        self.name = name
        self.topic = topic
        self.fields = tuple(fields)
        self.key_fields = tuple(field for field in self.fields if field.name in key)
        assert self.key_fields, "a table without a key is not tailed"
        self._members = [
            (f"{quoted(field.name)}:", types.converter(field.type_id)) for field in self.fields
        ]
        self._key_places = [i for i, field in enumerate(self.fields) if field.name in key]

    def key(self, row: Row) -> bytes:
        """The key columns as a JSON object."""
        members = []
        for place in self._key_places:
            value = row[place]
            assert isinstance(value, str), "a key is neither null nor too large"
            label, convert = self._members[place]
            members.append(label + convert(value))
        return ("{" + ",".join(members) + "}").encode()

    def value(self, row: Row) -> bytes:
        """The whole row as a JSON object; large values must be filled in before."""
        members = [
            label + "null" if value is None else label + convert(cast(str, value))
            for (label, convert), value in zip(self._members, row, strict=True)
        ]
        return ("{" + ",".join(members) + "}").encode()

    def key_texts(self, row: Row) -> list[str]:
        texts = [row[place] for place in self._key_places]
        return [text for text in texts if isinstance(text, str)]


def topic_name(prefix: str, table: TableName) -> str:
    """`prefix.schema.table`; characters that a topic name may not have become underscores."""
    return _NOT_ALLOWED.sub("_", f"{prefix}.{table}")[:NAME_CHARACTERS_MAX]


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
