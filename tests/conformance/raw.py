"""Requests on a plain socket, and answers as JSON in which what must differ is masked.

The codec is ours; it is checked byte for byte against an independent one elsewhere.
"""

import base64
import socket
import struct
from typing import Any

from ottla.protocol.apis import ApiKey, response_class
from ottla.protocol.codec import decode_from, encode
from ottla.protocol.header import RequestHeader, decode_response_header, encode_request_header

CLOSED = "closed"
SILENT = "silent"
ANSWER_SECONDS_MAX = 5.0

# What two right answers may differ in, and what is left of it: only whether it was there.
MASKED = {
    "cluster_id": "chosen when the directory is formatted",
    "topic_id": "random",
    "host": "where this broker happens to listen",
    "port": "where this broker happens to listen",
    "error_message": "our own words",
    "batch_index_error_message": "our own words",
    "documentation": "our own words",
    "producer_id": "blocks of ids are handed out as each broker likes",
    "session_id": "random",
    "log_dir": "a temporary directory",
    "total_bytes": "the size of the disk",
    "usable_bytes": "the space left on the disk",
    "replica_directory_id": "random",
    "log_end_offset": "where the metadata log happens to end",
    "last_fetch_timestamp": "a time",
    "last_caught_up_timestamp": "a time",
    "member_id": "ends with something random",
    "leader": "ends with something random",
    "member_epoch": "Apache Kafka counts on while it is starting",
    "group_epoch": "as member_epoch",
    "assignment_epoch": "as member_epoch",
    "finalized_features_epoch": "an offset of the metadata log",
}
# By what the elements of a list are sorted before they are compared, where order means nothing.
SORTED_BY = (
    "group_id",
    "name",
    "topic",
    "api_key",
    "partition_index",
    "index",
    "topic_id",
    "member_type",
    "rack_id",
)


class Connection:
    """One connection; requests are answered one after the other."""

    def __init__(self, bootstrap: str) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), 5)
        self._socket.settimeout(ANSWER_SECONDS_MAX)
        self._correlation_id = 0

    def ask(self, request: Any, version: int) -> Any:  # noqa: ANN401
        """The decoded answer, or CLOSED."""
        self._correlation_id += 1
        key = type(request).API_KEY
        header = RequestHeader(key, version, self._correlation_id, "conformance")
        self.send_frame(encode_request_header(header) + encode(request, version))
        frame = self.receive_frame()
        if isinstance(frame, str):
            return frame
        correlation_id, position = decode_response_header(frame, key, version)
        assert correlation_id == self._correlation_id, "answers come in the order of requests"
        answer, end = decode_from(response_class(ApiKey(key)), frame, position, version)
        assert end == len(frame), f"{len(frame) - end} bytes follow the answer"
        return answer

    def send_frame(self, frame: bytes) -> None:
        self.send_bytes(struct.pack(">i", len(frame)) + frame)

    def send_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive_frame(self, seconds_max: float = ANSWER_SECONDS_MAX) -> bytes | str:
        self._socket.settimeout(seconds_max)
        try:
            return self._receive(struct.unpack(">i", self._receive(4))[0])
        except ConnectionError:
            return CLOSED
        except TimeoutError:
            return SILENT

    def _receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise ConnectionResetError
            data += more
        return bytes(data)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def as_json(value: Any, name: str = "") -> Any:  # noqa: ANN401
    """The answer as JSON, masked and in a fixed order."""
    if name in MASKED:
        return _presence(value)
    if hasattr(value, "__fields__"):
        found = {field: as_json(getattr(value, field), field) for field in value.__slots__}
        if "current_voters" in found:  # A quorum's, an offset of the metadata log.
            found["high_watermark"] = _presence(found["high_watermark"])
        return found
    if isinstance(value, list):
        return sorted((as_json(element) for element in value), key=_order)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b16encode(bytes(value)).decode()
    return value


def _presence(value: Any) -> str:  # noqa: ANN401
    if value is None:
        return "<null>"
    return "<some>" if value and value != bytes(16) and value != -1 else "<none>"


def _order(element: Any) -> str:  # noqa: ANN401
    if not isinstance(element, dict):
        return f"{element!s:>12}"
    return "".join(f"{element[key]!s:>12}" for key in SORTED_BY if key in element)
