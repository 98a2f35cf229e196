"""ListTransactions (api key 66), versions 0 to 2: the transactions that a broker coordinates.

v1   duration_filter
v2   transactional_id_pattern
"""

from typing import ClassVar

from ottla.protocol.schema import array, int16, int32, int64, message, string


@message
class Request:
    API_KEY: ClassVar = 66
    VERSIONS: ClassVar = range(0, 3)
    FLEXIBLE_SINCE: ClassVar = 0

    state_filters: list[str] = array(string)
    producer_id_filters: list[int] = array(int64)
    duration_filter: int = int64(-1, since=1)
    transactional_id_pattern: str | None = string(None, since=2, nullable=2)


@message
class TransactionState:
    transactional_id: str = string()
    producer_id: int = int64()
    transaction_state: str = string()


@message
class Response:
    API_KEY: ClassVar = 66
    VERSIONS: ClassVar = range(0, 3)
    FLEXIBLE_SINCE: ClassVar = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    unknown_state_filters: list[str] = array(string)
    transaction_states: list[TransactionState] = array(TransactionState)
