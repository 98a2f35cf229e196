"""Valid topic names."""

import re
from typing import Final

NAME_CHARACTERS_MAX: Final = 249

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def fault_of(name: str) -> str | None:
    """Why a topic name is invalid, in Kafka's words, or None."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > NAME_CHARACTERS_MAX:
        return f"the length of '{name}' is longer than the max allowed length {NAME_CHARACTERS_MAX}"
    if not _LEGAL.fullmatch(name):
        return (
            f"'{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None


def can_collide(name: str) -> bool:
    """Metrics replace periods by underscores, so such names may collide."""
    return "." in name or "_" in name


def unified(name: str) -> str:
    return name.replace(".", "_")
