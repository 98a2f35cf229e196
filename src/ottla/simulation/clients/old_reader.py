"""Reads as clients do that send no leader epochs: those before KIP-320, and some to this day."""

from ottla.client.metadata import Topic
from ottla.client.reader import Reader

UNKNOWN = -1


class OldReader(Reader):
    """A replica that leads no more cannot tell that this reader takes it for the leader."""

    def _epoch_of(self, topic: Topic, partition: int) -> int:  # noqa: ARG002
        return UNKNOWN
