"""What one request may cost: its elements, and its share of a loop turn.

A request names what exists, or a few things that do not. So the elements of its arrays are bounded
by what exists, and more are malformed. Decoding a request and looking at each of its elements
takes time by its bytes: long requests share the budget of a loop turn with the scans of batches.
"""

from typing import Final, TypeVar

from ottla.metadata.image.image import ClusterImage
from ottla.model.errors import TooManyElements
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import decode
from ottla.protocol.varint import Buffer

M = TypeVar("M")

# Any request may have so many elements; 5 us for each fill a turn.
ELEMENTS_FREE: Final = 10_000
# And so many for each partition that exists: AlterPartition lists the replicas of each one.
ELEMENTS_PER_PARTITION: Final = 8

SHORT_BYTES: Final = 512  # Most requests, which cost what any request costs.
BYTES_PER_US: Final = 4
PRODUCE_US: Final = 100  # Its batches have their own cost.
TASK_US: Final = 100  # To start the task of a request, decide on it, and answer.


def decode_request(cls: type[M], body: Buffer, version: int, image: ClusterImage) -> M:
    """The request in `body`; ProtocolError if it cannot be read or has too many elements."""
    try:
        return decode(cls, body, version, elements_max=ELEMENTS_FREE)
    except TooManyElements:
        partitions = sum(len(topic.partitions) for topic in image.topics_by_id.values())
        if not partitions:
            raise
        elements_max = ELEMENTS_FREE + ELEMENTS_PER_PARTITION * partitions
        return decode(cls, body, version, elements_max=elements_max)


def cost_us(api_key: int, size: int, *, is_async: bool) -> int:
    """What a request with a body of `size` bytes takes of a loop turn's budget."""
    us = TASK_US if is_async or api_key == ApiKey.ENVELOPE else 0
    if size > SHORT_BYTES:
        us += PRODUCE_US if api_key == ApiKey.PRODUCE else size // BYTES_PER_US
    return us
