"""Requests of groups as bytes on the wire, for the load generator to send over and over."""

import struct
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.conformance.crowd import ClassicMember, Member

from ottla.protocol.codec import encode
from ottla.protocol.header import RequestHeader, encode_request_header
from ottla.protocol.messages import consumer_group_heartbeat, heartbeat, offset_commit

COMMIT_VERSION, HEARTBEAT_VERSION, CONSUMER_HEARTBEAT_VERSION = 8, 4, 1
# How many bytes before the end of an answer its error code begins.
COMMIT_ERROR_AT = 2 + 1 + 1 + 1  # Then end a partition, a topic and the answer.
HEARTBEAT_ERROR_AT = 2 + 1
# No message, the id of the member, its epoch, the interval, no assignment, the end.
CONSUMER_HEARTBEAT_ERROR_AT = 2 + 1 + (1 + len(str(uuid.uuid4()))) + 4 + 4 + 1 + 1


def frame(request: Any, version: int) -> bytes:  # noqa: ANN401
    header = RequestHeader(type(request).API_KEY, version, 0, "benchmark")
    body = encode_request_header(header) + encode(request, version)
    return struct.pack(">i", len(body)) + body


def write_frames(path: Path, frames: Iterable[bytes]) -> Path:
    path.write_bytes(b"".join(frames))
    return path


def commit(group: str, topic: str, partitions: Iterable[int], member: Member | None) -> bytes:
    """Of a member, or of someone who belongs to no group's members."""
    parts = [
        offset_commit.OffsetCommitRequestPartition(index, 1_000_000 + index, committed_metadata="")
        for index in partitions
    ]
    request = offset_commit.Request(
        group, topics=[offset_commit.OffsetCommitRequestTopic(topic, partitions=parts)]
    )
    if member is not None:
        request.member_id = member.id
        request.generation_id_or_member_epoch = member.epoch
    return frame(request, COMMIT_VERSION)


def error_at(member: Member) -> int:
    is_classic = isinstance(member, ClassicMember)
    return HEARTBEAT_ERROR_AT if is_classic else CONSUMER_HEARTBEAT_ERROR_AT


def beat(member: Member) -> bytes:
    if isinstance(member, ClassicMember):
        request = heartbeat.Request(member.group, member.epoch, member.id)
        return frame(request, HEARTBEAT_VERSION)
    new = consumer_group_heartbeat.Request(member.group, member.id, member.epoch)
    return frame(new, CONSUMER_HEARTBEAT_VERSION)
