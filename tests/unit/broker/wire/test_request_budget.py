"""What one request may have and cost."""

import pytest

from ottla.broker.wire.batch_scans import TURN_US
from ottla.broker.wire.request_budget import (
    BYTES_PER_US,
    ELEMENTS_FREE,
    ELEMENTS_PER_PARTITION,
    SHORT_BYTES,
    TASK_US,
    cost_us,
    decode_request,
)
from ottla.model.errors import ProtocolError
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import encode
from ottla.protocol.messages import metadata, offset_fetch
from tests.unit.broker.serving import serving

PARTITIONS = 5


def names(count: int) -> bytes:
    topics = [metadata.MetadataRequestTopic(name="a") for _ in range(count)]
    return encode(metadata.Request(topics), 8)


def indexes(count: int) -> bytes:
    topic = offset_fetch.OffsetFetchRequestTopic("a", list(range(count)))
    return encode(offset_fetch.Request(group_id="g", topics=[topic]), 6)


def test_the_elements_of_a_request_are_bounded_by_what_exists() -> None:
    with serving() as world:
        image = world.broker.image
        assert decode_request(metadata.Request, names(ELEMENTS_FREE), 8, image)
        with pytest.raises(ProtocolError):
            decode_request(metadata.Request, names(ELEMENTS_FREE + 1), 8, image)
        with pytest.raises(ProtocolError):
            decode_request(offset_fetch.Request, indexes(ELEMENTS_FREE), 6, image)
        world.topic(partitions=PARTITIONS)
        count_max = ELEMENTS_FREE + ELEMENTS_PER_PARTITION * PARTITIONS
        image = world.broker.image
        assert decode_request(metadata.Request, names(count_max), 8, image)
        assert decode_request(offset_fetch.Request, indexes(count_max - 1), 6, image)
        with pytest.raises(ProtocolError):
            decode_request(metadata.Request, names(count_max + 1), 8, image)


def test_short_requests_cost_nothing_beyond_the_ordinary() -> None:
    assert cost_us(ApiKey.METADATA, SHORT_BYTES, is_async=False) == 0
    assert cost_us(ApiKey.METADATA, 100_000, is_async=False) == 100_000 // BYTES_PER_US
    assert cost_us(ApiKey.PRODUCE, 100_000, is_async=False) < TURN_US // 10


def test_request_with_a_task_of_its_own_takes_a_share_however_short() -> None:
    assert cost_us(ApiKey.LIST_OFFSETS, SHORT_BYTES, is_async=True) == TASK_US
