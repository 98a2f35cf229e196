"""Security records of `__cluster_metadata`: credentials, tokens, quotas, ACLs.

`metadata_records` encodes and decodes them. All have only version 0.
"""

from typing import ClassVar

from ottla.protocol.schema import (
    array,
    binary,
    boolean,
    float64,
    int8,
    int32,
    int64,
    message,
    string,
    uuid,
)


@message
class DelegationTokenRecord:
    API_KEY: ClassVar = 10
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    owner: str = string()
    requester: str = string()
    renewers: list[str] = array(string)
    issue_timestamp: int = int64()
    max_timestamp: int = int64()
    expiration_timestamp: int = int64()
    token_id: str = string()


@message
class UserScramCredentialRecord:
    API_KEY: ClassVar = 11
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    name: str = string()
    mechanism: int = int8()
    salt: bytes = binary()
    stored_key: bytes = binary()
    server_key: bytes = binary()
    iterations: int = int32()


@message
class EntityData:
    entity_type: str = string()
    entity_name: str | None = string(nullable=0)


@message
class ClientQuotaRecord:
    API_KEY: ClassVar = 14
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    entity: list[EntityData] = array(EntityData)
    key: str = string()
    value: float = float64()
    remove: bool = boolean()


@message
class AccessControlEntryRecord:
    API_KEY: ClassVar = 18
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    id: bytes = uuid()
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8()
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@message
class RemoveAccessControlEntryRecord:
    API_KEY: ClassVar = 19
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    id: bytes = uuid()


@message
class RemoveUserScramCredentialRecord:
    API_KEY: ClassVar = 22
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    name: str = string()
    mechanism: int = int8()


@message
class RemoveDelegationTokenRecord:
    API_KEY: ClassVar = 26
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    token_id: str = string()
