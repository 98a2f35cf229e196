"""Random ids for topics, directories and incarnations."""

from collections.abc import Callable

from ottla.model.types import Uuid


def new_uuid(random_bytes: Callable[[int], bytes]) -> Uuid:
    """A random version 4 UUID, as Kafka draws them: its text never starts with a dash."""
    while True:
        drawn = bytearray(random_bytes(16))
        drawn[6] = drawn[6] & 0x0F | 0x40
        drawn[8] = drawn[8] & 0x3F | 0x80
        if drawn[0] >> 2 != 62:  # The base64 digit "-".
            return bytes(drawn)
