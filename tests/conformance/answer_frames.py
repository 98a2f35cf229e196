"""Bytes that are no request, or hardly one; whether the connection is closed is what counts."""

import struct


def frame(key: int, version: int, rest: bytes, client_id: bytes | None = b"c") -> bytes:
    name = struct.pack(">h", -1 if client_id is None else len(client_id)) + (client_id or b"")
    body = struct.pack(">hhi", key, version, 1) + name + rest
    return struct.pack(">i", len(body)) + body


RAW: dict[str, bytes] = {
    "a negative size": struct.pack(">i", -1),
    "a size of zero": struct.pack(">i", 0),
    "a size above the limit": struct.pack(">i", 104_857_601),
    "a frame too short for a header": struct.pack(">i", 4) + b"\0\3\0\0",
    "an API key that does not exist": frame(500, 0, b""),
    "an API key below zero": frame(-1, 0, b""),
    "an API of the controller": frame(52, 0, b"\0\0"),
    "an API from the time of ZooKeeper": frame(4, 0, b""),
    "Produce v2, which is advertised but gone": frame(0, 2, b"\0\1\0\0\0\1\0\0\0\0"),
    "Fetch v3": frame(1, 3, b"\0" * 20),
    "Metadata in a version that does not exist": frame(3, 99, b""),
    "a version below zero": frame(3, -1, b"\0\0\0\0"),
    "ApiVersions in a version that does not exist": frame(18, 99, b"\0\1\2\3"),
    "a null client id": frame(3, 1, b"\0\0\0\0", client_id=None),
    "a client id longer than its frame": struct.pack(">ihhih", 12, 3, 1, 1, 500) + b"ab",
    "bytes after the body": frame(3, 1, b"\0\0\0\0trailing"),
    "a body that ends too early": frame(3, 1, struct.pack(">i", 5)),
    "an array of two thousand million": frame(3, 1, struct.pack(">i", 2**31 - 1)),
    "a string longer than its frame": frame(3, 1, struct.pack(">ih", 1, 30_000) + b"ab"),
    "a string that is null and must not be": frame(3, 1, struct.pack(">ih", 1, -1)),
    "a compact array of four thousand million": frame(3, 9, b"\0\xff\xff\xff\xff\x0f\0\0\0"),
    "a varint of six bytes": frame(3, 9, b"\0\xff\xff\xff\xff\xff\1\0\0\0"),
    "a tag longer than its frame": frame(3, 9, b"\0\1\1\0\0\1\0\xff\x7f"),
    "text that is not UTF-8": frame(3, 1, struct.pack(">ih", 1, 2) + b"\xff\xfe"),
}
