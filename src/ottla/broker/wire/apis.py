"""The table of APIs: versions, the listeners that serve each one, how, and its error response.

ApiVersions answers from this table, and dispatch serves by it. A row is all that an API needs
whose request the controller or the quorum decides as it is; other APIs have a module in `handlers`,
which is imported with their first request, so that a broker starts quickly.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from importlib import import_module
from types import ModuleType
from typing import Any, Final, NamedTuple

from ottla.broker.wire import error_responses, group_error_responses
from ottla.broker.wire.connection import Connection
from ottla.broker.wire.error_responses import Answer, Failure
from ottla.protocol.apis import ApiKey


class Listener(Enum):
    """Kind of a listener: for clients and brokers, or for controllers."""

    BROKER = "broker"
    CONTROLLER = "controller"


class Way(Enum):
    """How a request is served."""

    HANDLER = "handler"  # By the API's module in `handlers`.
    # By the active controller, as it is. A broker passes the request on; a controller that is not
    # the active one refuses it, or two of them would send a request to and fro.
    DECISION = "decision"
    QUORUM = "quorum"  # By this node's part of the quorum; a broker passes it on to the leader.
    ENVELOPE = "envelope"  # By the way of the request inside, which a broker of Kafka's forwards.


class Api(NamedTuple):
    key: ApiKey
    versions: range
    broker: Way | None  # How each kind of listener serves it; None where it does not.
    controller: Way | None
    error: Answer  # Makes the response to a request that failed as a whole.
    is_enveloped: bool = False  # Kafka's brokers forward it, in an Envelope.
    controller_since: int = 0  # The first version on a controller's listener.

    @property
    def messages(self) -> ModuleType:
        return import_module(f"ottla.protocol.messages.{self.key.name.lower()}")

    def way(self, listener: Listener) -> Way | None:
        return self.broker if listener is Listener.BROKER else self.controller

    def versions_on(self, listener: Listener) -> range:
        if listener is Listener.BROKER:
            return self.versions
        return range(max(self.versions.start, self.controller_since), self.versions.stop)


Handler = Callable[[Any, Any, Any], Any]
# A fast path: connection, frame, where its header begins, and its body begins and ends. False if
# the request is not of the kind that it serves; then nothing has happened yet.
RawHandler = Callable[[Connection, memoryview, int, int, int], bool]


class Entry(NamedTuple):
    """An API whose handler has been imported."""

    request: type[Any]
    handle: Handler
    versions: range
    flexible_since: int
    is_async: bool
    raw: RawHandler | None


def handles(request: type) -> Callable[[Handler], Handler]:
    """Mark a module's handler and the message it takes."""

    def mark(handler: Handler) -> Handler:
        handler.request_class = request  # type: ignore[attr-defined]
        return handler

    return mark


def error_response(
    api_key: int, request: object, version: int, code: int, message: str | None = None
) -> Any:  # noqa: ANN401
    """The response that says `code` to this request, for an API of any key."""
    api = APIS[api_key]
    return api.error(api.messages, Failure(request, version, code, message))


def is_enveloped(api_key: int) -> bool:
    """True if brokers forward requests of this API; they answer all others themselves."""
    return api_key in APIS and APIS[api_key].is_enveloped


def changes_image(api_key: int) -> bool:
    """True if the active controller decides such requests of clients by writing records."""
    reads = (ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.DESCRIBE_QUORUM)
    return is_enveloped(api_key) and api_key not in reads


def served_on(listener: Listener) -> dict[int, Api]:
    return {key: api for key, api in APIS.items() if api.way(listener) is not None}


def _row(
    key: ApiKey,
    first: int,
    last: int,
    broker: Way | None,
    controller: Way | None,
    error: Answer,
    *,
    is_enveloped: bool = False,
    controller_since: int = 0,
) -> Api:
    versions = range(first, last + 1)
    return Api(key, versions, broker, controller, error, is_enveloped, controller_since)


HANDLER, DECISION, QUORUM, ENVELOPE = Way

# Key, first and last version, way on brokers' listeners and on controllers', error response.
_ROWS: Final = (
    _row(ApiKey.PRODUCE, 0, 13, HANDLER, None, error_responses.produce),
    _row(ApiKey.FETCH, 4, 18, HANDLER, QUORUM, error_responses.fetch, controller_since=12),
    _row(ApiKey.LIST_OFFSETS, 1, 11, HANDLER, None, error_responses.list_offsets),
    _row(ApiKey.METADATA, 0, 13, HANDLER, None, error_responses.metadata),
    _row(ApiKey.OFFSET_COMMIT, 2, 10, HANDLER, None, group_error_responses.offset_commit),
    _row(ApiKey.OFFSET_FETCH, 1, 10, HANDLER, None, group_error_responses.offset_fetch),
    _row(ApiKey.FIND_COORDINATOR, 0, 6, HANDLER, None, group_error_responses.find_coordinator),
    _row(ApiKey.JOIN_GROUP, 0, 9, HANDLER, None, group_error_responses.join_group),
    _row(ApiKey.HEARTBEAT, 0, 4, HANDLER, None, error_responses.top_level),
    _row(ApiKey.LEAVE_GROUP, 0, 5, HANDLER, None, error_responses.top_level),
    _row(ApiKey.SYNC_GROUP, 0, 5, HANDLER, None, error_responses.top_level),
    _row(ApiKey.DESCRIBE_GROUPS, 0, 6, HANDLER, None, group_error_responses.describe_groups),
    _row(ApiKey.LIST_GROUPS, 0, 5, HANDLER, None, error_responses.top_level),
    _row(ApiKey.API_VERSIONS, 0, 4, HANDLER, HANDLER, error_responses.top_level),
    _row(
        ApiKey.CREATE_TOPICS,
        2,
        7,
        HANDLER,
        HANDLER,
        error_responses.create_topics,
        is_enveloped=True,
    ),
    _row(
        ApiKey.DELETE_TOPICS,
        1,
        6,
        HANDLER,
        HANDLER,
        error_responses.delete_topics,
        is_enveloped=True,
    ),
    _row(ApiKey.DELETE_RECORDS, 0, 2, HANDLER, None, error_responses.delete_records),
    _row(ApiKey.INIT_PRODUCER_ID, 0, 5, HANDLER, None, error_responses.init_producer_id),
    _row(
        ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, 4, HANDLER, None, error_responses.offset_for_leader_epoch
    ),
    _row(ApiKey.DESCRIBE_CONFIGS, 1, 4, HANDLER, HANDLER, error_responses.describe_configs),
    _row(
        ApiKey.ALTER_CONFIGS,
        0,
        2,
        DECISION,
        DECISION,
        error_responses.alter_configs,
        is_enveloped=True,
    ),
    _row(ApiKey.DESCRIBE_LOG_DIRS, 1, 5, HANDLER, None, error_responses.top_level),
    _row(
        ApiKey.CREATE_PARTITIONS,
        0,
        3,
        HANDLER,
        HANDLER,
        error_responses.create_partitions,
        is_enveloped=True,
    ),
    _row(ApiKey.DELETE_GROUPS, 0, 2, HANDLER, None, group_error_responses.delete_groups),
    _row(
        ApiKey.ELECT_LEADERS,
        0,
        2,
        DECISION,
        DECISION,
        error_responses.elect_leaders,
        is_enveloped=True,
    ),
    _row(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        0,
        1,
        HANDLER,
        HANDLER,
        error_responses.alter_configs,
        is_enveloped=True,
    ),
    _row(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        0,
        1,
        DECISION,
        DECISION,
        error_responses.alter_partition_reassignments,
        is_enveloped=True,
    ),
    _row(
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        0,
        0,
        DECISION,
        DECISION,
        error_responses.top_level,
        is_enveloped=True,
    ),
    _row(ApiKey.OFFSET_DELETE, 0, 0, HANDLER, None, error_responses.top_level),
    _row(ApiKey.VOTE, 0, 2, None, QUORUM, error_responses.top_level),
    _row(ApiKey.BEGIN_QUORUM_EPOCH, 0, 1, None, QUORUM, error_responses.top_level),
    _row(ApiKey.END_QUORUM_EPOCH, 0, 1, None, QUORUM, error_responses.top_level),
    _row(
        ApiKey.DESCRIBE_QUORUM, 0, 2, HANDLER, HANDLER, error_responses.top_level, is_enveloped=True
    ),
    _row(ApiKey.ALTER_PARTITION, 2, 3, None, DECISION, error_responses.top_level),
    _row(
        ApiKey.UPDATE_FEATURES, 0, 2, HANDLER, HANDLER, error_responses.top_level, is_enveloped=True
    ),
    _row(ApiKey.ENVELOPE, 0, 0, None, ENVELOPE, error_responses.top_level),
    _row(ApiKey.FETCH_SNAPSHOT, 0, 1, None, QUORUM, error_responses.top_level),
    _row(ApiKey.DESCRIBE_CLUSTER, 0, 2, HANDLER, HANDLER, error_responses.top_level),
    _row(ApiKey.BROKER_REGISTRATION, 0, 4, None, DECISION, error_responses.top_level),
    _row(ApiKey.BROKER_HEARTBEAT, 0, 2, None, HANDLER, error_responses.top_level),
    _row(
        ApiKey.UNREGISTER_BROKER,
        0,
        0,
        DECISION,
        DECISION,
        error_responses.top_level,
        is_enveloped=True,
    ),
    _row(ApiKey.ALLOCATE_PRODUCER_IDS, 0, 0, None, DECISION, error_responses.top_level),
    _row(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1, HANDLER, None, error_responses.top_level),
    _row(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        0,
        1,
        HANDLER,
        None,
        group_error_responses.consumer_group_describe,
    ),
    _row(ApiKey.CONTROLLER_REGISTRATION, 0, 0, None, DECISION, error_responses.top_level),
    _row(ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, 0, None, DECISION, error_responses.top_level),
    _row(ApiKey.LIST_CONFIG_RESOURCES, 0, 1, HANDLER, None, error_responses.top_level),
    _row(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        0,
        HANDLER,
        None,
        error_responses.describe_topic_partitions,
    ),
    _row(ApiKey.ADD_RAFT_VOTER, 0, 1, QUORUM, QUORUM, error_responses.top_level, is_enveloped=True),
    _row(
        ApiKey.REMOVE_RAFT_VOTER, 0, 0, QUORUM, QUORUM, error_responses.top_level, is_enveloped=True
    ),
    _row(ApiKey.UPDATE_RAFT_VOTER, 0, 0, None, QUORUM, error_responses.top_level),
)

APIS: Final[Mapping[int, Api]] = {api.key: api for api in _ROWS}
