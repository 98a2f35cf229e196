"""UpdateRaftVoter (api key 82), version 0:
a voter tells the leader its new endpoints and versions."""

from typing import ClassVar

from ottla.protocol.schema import array, int16, int32, message, string, struct, uint16, uuid


@message
class Listener:
    name: str = string()
    host: str = string()
    port: int = uint16()


@message
class KRaftVersionFeature:
    min_supported_version: int = int16()
    max_supported_version: int = int16()


@message
class Request:
    API_KEY: ClassVar = 82
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    cluster_id: str | None = string(nullable=0)
    current_leader_epoch: int = int32()
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()
    listeners: list[Listener] = array(Listener)
    kraft_version_feature: KRaftVersionFeature = struct(KRaftVersionFeature)


@message
class CurrentLeader:
    leader_id: int = int32(-1)
    leader_epoch: int = int32(-1)
    host: str = string()
    port: int = int32()


@message
class Response:
    API_KEY: ClassVar = 82
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    current_leader: CurrentLeader = struct(CurrentLeader, tag=0)
