"""The identity of a client, as Kafka names it: a type and a name, `User:ANONYMOUS` without
security.
"""

from typing import Final, NamedTuple


class Principal(NamedTuple):
    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS: Final = Principal("User", "ANONYMOUS")
