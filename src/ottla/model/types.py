"""Identities and quantities of a Kafka cluster.

Identities are `NewType`s, so that one cannot be passed for another; quantities used in arithmetic
are plain aliases. Each clock has its own type: a wall-clock time is never a deadline.
"""

from base64 import b64decode, urlsafe_b64encode
from typing import Final, NamedTuple, NewType

Offset = int
Millis = int
Uuid = bytes  # Always 16 bytes: topic ids, directory ids, incarnation ids.

NodeId = NewType("NodeId", int)
ProducerId = NewType("ProducerId", int)
Monotonic = NewType(
    "Monotonic", int
)  # Milliseconds since an arbitrary start: timeouts, sessions, elections.
WallTime = NewType(
    "WallTime", int
)  # Milliseconds since 1970: record timestamps, retention, expiry.

ZERO_UUID: Final = bytes(16)
NO_PRODUCER: Final = ProducerId(-1)
NODE_ID_BITS: Final = 32


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def uuid_text(uuid: Uuid) -> str:
    """The 22 characters that Kafka's files, logs and tools show."""
    assert len(uuid) == 16, "an id has 16 bytes"
    return urlsafe_b64encode(uuid).rstrip(b"=").decode()


def uuid_from_text(text: str) -> Uuid:
    try:
        uuid = b64decode(text + "==", altchars=b"-_", validate=True)
    except ValueError:
        uuid = b""
    if "+" in text or "/" in text:  # Standard base64 characters, which Kafka does not accept.
        uuid = b""
    if len(uuid) != 16:
        raise ValueError(
            f"{text!r} is not an id: 22 characters of base64 (A-Z a-z 0-9 - _) expected"
        )
    return uuid
