"""Faults that a test can order from a broker, by Kafka's names, serialisable for another
process.
"""

from dataclasses import dataclass

from ottla.broker.wire.faults import Delay, Drop, Fail, Fault, LoseAnswer
from ottla.model.errors import ErrorCode
from ottla.protocol.apis import ApiKey


@dataclass(frozen=True, slots=True)
class FaultOrder:
    """A fault for the next `times` requests of an API."""

    kind: str  # fail, delay, drop or lose
    api: str
    times: int = 1
    error: str = ""
    message: str | None = None
    delay_ms: int = 0

    def api_key(self) -> ApiKey:
        return api_key(self.api)

    def fault(self) -> Fault:
        """The fault; ValueError for an unknown API, error or kind."""
        self.api_key()
        match self.kind:
            case "fail":
                return Fail(self.api_key(), error_code(self.error), self.message)
            case "delay":
                return Delay(self.delay_ms)
            case "drop":
                return Drop()
            case "lose":
                return LoseAnswer()
        raise ValueError(f"{self.kind!r} is not a fault")


def api_key(name: str) -> ApiKey:
    """`Produce`, `produce` or `PRODUCE`; `ListOffsets`, `list_offsets` or `LIST_OFFSETS`."""
    wanted = _plain(name)
    for key in ApiKey:
        if _plain(key.name) == wanted:
            return key
    raise ValueError(f"{name!r} is not an API of Kafka; one is called 'Produce', for example")


def error_code(name: str) -> ErrorCode:
    try:
        return ErrorCode[name.upper()]
    except KeyError:
        raise ValueError(
            f"{name!r} is not an error of Kafka; one is called 'NOT_LEADER_OR_FOLLOWER'"
        ) from None


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
