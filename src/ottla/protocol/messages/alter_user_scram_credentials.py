"""AlterUserScramCredentials (api key 51), version 0: set and remove SCRAM credentials."""

from typing import ClassVar

from ottla.protocol.schema import array, binary, int8, int16, int32, message, string


@message
class ScramCredentialDeletion:
    name: str = string()
    mechanism: int = int8()


@message
class ScramCredentialUpsertion:
    name: str = string()
    mechanism: int = int8()
    iterations: int = int32()
    salt: bytes = binary()
    salted_password: bytes = binary()


@message
class Request:
    API_KEY: ClassVar = 51
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    deletions: list[ScramCredentialDeletion] = array(ScramCredentialDeletion)
    upsertions: list[ScramCredentialUpsertion] = array(ScramCredentialUpsertion)


@message
class AlterUserScramCredentialsResult:
    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable=0)


@message
class Response:
    API_KEY: ClassVar = 51
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: int = int32()
    results: list[AlterUserScramCredentialsResult] = array(AlterUserScramCredentialsResult)
