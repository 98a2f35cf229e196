"""The little that the limits know of requests: where the one thing they need lies in a frame."""

_HEADER_BYTES = 4 + 2 + 2 + 4  # Size, api key, version, correlation id.


def body_position(frame: memoryview) -> int:
    """Behind the client id and the header's tags."""
    client_id_bytes = int.from_bytes(frame[_HEADER_BYTES : _HEADER_BYTES + 2], "big")
    return _HEADER_BYTES + 2 + client_id_bytes + 1


def records_position(frame: memoryview) -> int:
    """Where the records begin in a Produce 9 of one partition without a transactional id."""
    position = body_position(frame) + 1 + 2 + 4 + 1  # Transactional id, acks, timeout, topics.
    position += frame[position] + 1 + 4  # The topic's name, the partitions' count, the index.
    while frame[position] & 128:
        position += 1
    return position + 1


def fetch_offset_position(frame: memoryview) -> int:
    """Where the fetch offset lies in a Fetch 12 of one partition."""
    # Replica, wait, bytes at least and at most, isolation, session, its epoch, topics.
    position = body_position(frame) + 4 * 4 + 1 + 4 * 2 + 1
    return position + frame[position] + 1 + 4 + 4


def topic_name(frame: memoryview) -> bytes:
    """The topic of a Fetch 12."""
    position = body_position(frame) + 4 * 4 + 1 + 4 * 2 + 1
    return bytes(frame[position + 1 : position + frame[position]])
