"""The identity of a client, as Kafka names it: a type and a name, `User:ANONYMOUS` without
security.
"""

from typing import Final, NamedTuple


class Principal(NamedTuple):
    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


class Origin(NamedTuple):
    """On whose behalf a request is: also if a broker forwards it."""

    principal: Principal
    client_id: str
    host: str  # The client's address.


ANONYMOUS: Final = Principal("User", "ANONYMOUS")
