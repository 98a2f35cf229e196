"""AllocateProducerIds (api key 67), version 0:
a broker asks the controller for a block of producer ids."""

from typing import ClassVar

from ottla.protocol.schema import int16, int32, int64, message


@message
class Request:
    API_KEY: ClassVar = 67
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    broker_id: int = int32()
    broker_epoch: int = int64(-1)


@message
class Response:
    API_KEY: ClassVar = 67
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id_start: int = int64()
    producer_id_len: int = int32()
