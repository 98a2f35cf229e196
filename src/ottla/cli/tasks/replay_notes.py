"""What a replay notes before it sends a few records, so that after a crash it can send them again.

The note lies with the committed position of its dead letter partition. It says with which producer
id the records up to `until` are sent, from sequence 0 in each partition that they go to. Whoever
goes on sends the same batches under the same id, and brokers drop what they have already.
"""

import json
from typing import NamedTuple

from ottla.client.idempotence import Identity, Numbering
from ottla.model.types import Offset


class Begun(NamedTuple):
    until: Offset
    identity: Identity
    target: str | None  # The topic, if it was named; else each goes to where it came from.

    @property
    def numbering(self) -> Numbering:
        """Of each partition that the records go to."""
        return Numbering(self.identity)

    def encode(self) -> str:
        told = {"replaying_until": self.until, "to": self.target, "producer": self.identity}
        return json.dumps(told)


def read_note(metadata: str, position: Offset) -> Begun | None:
    """The note, if it is one and its records are not all behind the position already."""
    try:
        told = json.loads(metadata)
        until, (producer_id, producer_epoch) = told["replaying_until"], told["producer"]
        begun = Begun(int(until), Identity(int(producer_id), int(producer_epoch)), told["to"])
    except (ValueError, TypeError, KeyError):
        return None
    return begun if begun.until > position else None
