"""What can go wrong between a client and a cluster, said so that a person can act on it.

ClientError
├── CannotConnect    nobody answered at an address, so nothing was sent
│   └── UnknownHost  its name has no address at all
├── ConnectionLost   the connection ended while a request was under way: its fate is unknown
├── RequestTimeout   no answer came in time: its fate is unknown
├── ResponseTooLarge a broker announced a response above what is read
├── NotServed        the broker does not serve an API, or no version of it that we speak
└── Refused          the broker answered with an error code
"""

from socket import gaierror

from ottla.env.network import Address
from ottla.model.errors import RETRIABLE, ErrorCode

# The broker's log ends before, or after, the sequence that the producer counts on.
OUT_OF_SEQUENCE = frozenset({ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER})
TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


class ClientError(Exception):
    """The root of this tree."""

    is_retriable = False


class CannotConnect(ClientError):
    is_retriable = True


class UnknownHost(CannotConnect):
    is_retriable = False


class ConnectionLost(ClientError):
    is_retriable = True


class RequestTimeout(ClientError):
    is_retriable = True


class ResponseTooLarge(ClientError):
    pass


class NotServed(ClientError):
    pass


class Refused(ClientError):
    def __init__(self, code: int, message: str | None = None, about: str = "") -> None:
        super().__init__(code, message, about)
        self.code = error_code(code)
        self.message = message
        self.about = about

    @property
    def is_retriable(self) -> bool:  # type: ignore[override]  # A fact of the class, or of the code.
        return self.code in RETRIABLE

    def __str__(self) -> str:
        sentence = self.message or MEANINGS.get(self.code) or self.code.name
        return f"{self.about}: {sentence}" if self.about else sentence


def error_code(code: int) -> ErrorCode:
    """The code's name; a broker newer than us may send one that has none here."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def cannot_connect(address: Address, error: Exception) -> CannotConnect:
    """The failure to open a connection, as told to whoever asked for it."""
    kind = UnknownHost if isinstance(error, gaierror) else CannotConnect
    return kind(f"cannot connect to {address}: {reason(error)}")


def reason(error: Exception) -> str:
    """A few words for an error of the network."""
    if isinstance(error, TimeoutError) and not error.strerror:
        return "no answer in time"
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error)


def check(code: int, message: str | None = None, about: str = "") -> None:
    """Raise what a broker answered, unless it answered that all is well."""
    if code != ErrorCode.NONE:
        raise Refused(code, message, about)


MEANINGS = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "the broker met an error it did not expect; its log says more",
    ErrorCode.OFFSET_OUT_OF_RANGE: "the offset lies outside of what the partition holds",
    ErrorCode.CORRUPT_MESSAGE: "the broker found a record batch whose checksum does not match",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic or partition",
    ErrorCode.LEADER_NOT_AVAILABLE: "the partition has no leader at the moment",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "the partition's leader has moved",
    ErrorCode.REQUEST_TIMED_OUT: "the broker could not finish the request in time",
    ErrorCode.MESSAGE_TOO_LARGE: "the record is larger than the topic's max.message.bytes",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "the topic's name is not allowed",
    ErrorCode.RECORD_LIST_TOO_LARGE: "the record batch is larger than the topic's segment.bytes",
    ErrorCode.NOT_ENOUGH_REPLICAS: "fewer replicas are in sync than min.insync.replicas asks for",
    ErrorCode.INVALID_REQUIRED_ACKS: "acks must be 0, 1 or all",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "this user may not do that with the topic",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "this user may not do that in the cluster",
    ErrorCode.INVALID_TIMESTAMP: "the record's timestamp lies outside of what the topic allows",
    ErrorCode.UNKNOWN_MEMBER_ID: "the group has members, and this is none of them",
    ErrorCode.ILLEGAL_GENERATION: "the group has changed meanwhile",
    ErrorCode.REBALANCE_IN_PROGRESS: "the group is changing; wait a moment",
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: "the group's members use another protocol or assignor",
    ErrorCode.INVALID_GROUP_ID: "the group's name is not allowed",
    ErrorCode.INVALID_SESSION_TIMEOUT: "the session timeout lies outside of the broker's limits",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "this user may not do that with the group",
    ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "the group has as many members as the broker allows",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "members of the group are subscribed to the topic",
    ErrorCode.NON_EMPTY_GROUP: "the group has members: stop its consumers first",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "the metadata of the offset is too large",
    ErrorCode.UNSUPPORTED_VERSION: "the broker does not speak this version of the request",
    ErrorCode.TOPIC_ALREADY_EXISTS: "the topic exists already",
    ErrorCode.INVALID_PARTITIONS: "the number of partitions is not possible",
    ErrorCode.INVALID_REPLICATION_FACTOR: "there are not as many brokers as replicas asked for",
    ErrorCode.INVALID_CONFIG: "a config has a value that is not allowed",
    ErrorCode.NOT_CONTROLLER: "the controller has moved",
    ErrorCode.INVALID_REQUEST: "the broker found the request wrong in itself",
    ErrorCode.POLICY_VIOLATION: "a policy of the cluster forbids it",
    ErrorCode.KAFKA_STORAGE_ERROR: "the broker's disk failed or is full",
    ErrorCode.INVALID_RECORD: "the broker found a record that is not valid for this topic",
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: "the broker does not know this compression",
    ErrorCode.UNKNOWN_TOPIC_ID: "the topic was deleted, or made anew under the same name",
}
