"""DescribeUserScramCredentials (api key 50), version 0:
which users have which SCRAM credentials."""

from typing import ClassVar

from ottla.protocol.schema import array, int8, int16, int32, message, string


@message
class UserName:
    name: str = string()


@message
class Request:
    API_KEY: ClassVar = 50
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    users: list[UserName] | None = array(UserName, nullable=0)


@message
class CredentialInfo:
    mechanism: int = int8()
    iterations: int = int32()


@message
class DescribeUserScramCredentialsResult:
    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable=0)
    credential_infos: list[CredentialInfo] = array(CredentialInfo)


@message
class Response:
    API_KEY: ClassVar = 50
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0)
    results: list[DescribeUserScramCredentialsResult] = array(DescribeUserScramCredentialsResult)
