"""Note of a replay before it sends some records, so that they can be sent again after a crash.

The note is the metadata of the committed offset of its dead letter partition. It holds the producer
id for the records up to `until`, sent from sequence 0 in each target partition. The next run sends
the same batches with the same id, and brokers drop duplicates.
"""

import json
from typing import NamedTuple

from ottla.client.idempotence import Identity, Numbering
from ottla.model.types import Offset


class Begun(NamedTuple):
    until: Offset
    identity: Identity
    target: str | None  # The topic, if one was named; else each letter's original topic.

    @property
    def numbering(self) -> Numbering:
        """Of each partition that the records go to."""
        return Numbering(self.identity)

    def encode(self) -> str:
        fields = {"replaying_until": self.until, "to": self.target, "producer": self.identity}
        return json.dumps(fields)


def read_note(metadata: str, position: Offset) -> Begun | None:
    """The note, if it is one and its records are not all below the position."""
    try:
        fields = json.loads(metadata)
        until, (producer_id, producer_epoch) = fields["replaying_until"], fields["producer"]
        begun = Begun(int(until), Identity(int(producer_id), int(producer_epoch)), fields["to"])
    except (ValueError, TypeError, KeyError):
        return None
    return begun if begun.until > position else None
