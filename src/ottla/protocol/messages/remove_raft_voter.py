"""RemoveRaftVoter (api key 81), version 0: remove a voter from the quorum."""

from typing import ClassVar

from ottla.protocol.schema import int16, int32, message, string, uuid


@message
class Request:
    API_KEY: ClassVar = 81
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    cluster_id: str | None = string(nullable=0)
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()


@message
class Response:
    API_KEY: ClassVar = 81
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0, ignorable=True)
