"""From a frame to its handler: the header, the table of served APIs, and what an error becomes.

`SERVED` is what ApiVersions answers. A handler's module, and the messages it needs, are imported
with the first request of their API, so that a broker starts quickly. A handler is a plain call
that answers through its `Reply`, or a coroutine that returns its response.
"""

import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.broker.connection import Connection, Reply, Serve
from ottla.model.errors import ErrorCode, ProtocolError, Refusal
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import decode_from, encode_into
from ottla.protocol.varint import skip_tags

if TYPE_CHECKING:
    from ottla.broker.server import Broker

logger = logging.getLogger(__name__)


class Served(NamedTuple):
    module: str
    versions: range


def _versions(first: int, last: int) -> range:
    return range(first, last + 1)


SERVED: Final[dict[int, Served]] = {
    ApiKey.PRODUCE: Served("produce", _versions(0, 13)),
    ApiKey.FETCH: Served("fetch", _versions(4, 18)),
    ApiKey.LIST_OFFSETS: Served("list_offsets", _versions(1, 11)),
    ApiKey.METADATA: Served("metadata", _versions(0, 13)),
    ApiKey.OFFSET_COMMIT: Served("offset_commit", _versions(2, 10)),
    ApiKey.OFFSET_FETCH: Served("offset_fetch", _versions(1, 10)),
    ApiKey.FIND_COORDINATOR: Served("find_coordinator", _versions(0, 6)),
    ApiKey.JOIN_GROUP: Served("join_group", _versions(0, 9)),
    ApiKey.HEARTBEAT: Served("heartbeat", _versions(0, 4)),
    ApiKey.LEAVE_GROUP: Served("leave_group", _versions(0, 5)),
    ApiKey.SYNC_GROUP: Served("sync_group", _versions(0, 5)),
    ApiKey.DESCRIBE_GROUPS: Served("describe_groups", _versions(0, 6)),
    ApiKey.LIST_GROUPS: Served("list_groups", _versions(0, 5)),
    ApiKey.API_VERSIONS: Served("api_versions", _versions(0, 4)),
    ApiKey.CREATE_TOPICS: Served("create_topics", _versions(2, 7)),
    ApiKey.DELETE_TOPICS: Served("delete_topics", _versions(1, 6)),
    ApiKey.DELETE_RECORDS: Served("delete_records", _versions(0, 2)),
    ApiKey.INIT_PRODUCER_ID: Served("init_producer_id", _versions(0, 5)),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Served("offset_for_leader_epoch", _versions(2, 4)),
    ApiKey.DESCRIBE_CONFIGS: Served("describe_configs", _versions(1, 4)),
    ApiKey.ALTER_CONFIGS: Served("alter_configs", _versions(0, 2)),
    ApiKey.DESCRIBE_LOG_DIRS: Served("describe_log_dirs", _versions(1, 5)),
    ApiKey.CREATE_PARTITIONS: Served("create_partitions", _versions(0, 3)),
    ApiKey.DELETE_GROUPS: Served("delete_groups", _versions(0, 2)),
    ApiKey.ELECT_LEADERS: Served("elect_leaders", _versions(0, 2)),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Served("incremental_alter_configs", _versions(0, 1)),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Served("alter_partition_reassignments", _versions(0, 1)),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Served("list_partition_reassignments", _versions(0, 0)),
    ApiKey.OFFSET_DELETE: Served("offset_delete", _versions(0, 0)),
    ApiKey.DESCRIBE_QUORUM: Served("describe_quorum", _versions(0, 2)),
    ApiKey.UPDATE_FEATURES: Served("update_features", _versions(0, 2)),
    ApiKey.DESCRIBE_CLUSTER: Served("describe_cluster", _versions(0, 2)),
    ApiKey.UNREGISTER_BROKER: Served("unregister_broker", _versions(0, 0)),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Served("consumer_group_heartbeat", _versions(0, 1)),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Served("consumer_group_describe", _versions(0, 1)),
    ApiKey.LIST_CONFIG_RESOURCES: Served("list_config_resources", _versions(0, 1)),
    ApiKey.ADD_RAFT_VOTER: Served("add_raft_voter", _versions(0, 1)),
    ApiKey.REMOVE_RAFT_VOTER: Served("remove_raft_voter", _versions(0, 0)),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Served("describe_topic_partitions", _versions(0, 0)),
}


# What a KRaft controller's own listener offers: the same decisions, without a broker between.
CONTROLLER_SERVED: Final[dict[int, Served]] = {
    key: SERVED[key]
    for key in (
        ApiKey.API_VERSIONS,
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
    )
}


@dataclass(frozen=True, slots=True)
class Context:
    """Who asks: what a coroutine handler may know of the request beside its body."""

    version: int
    client_id: str | None
    connection: Connection


Handler = Callable[[Any, Any, "Broker"], Any]
# A fast path: connection, frame, where its header begins, and its body begins and ends. False if
# the request is not of the kind that it serves; then nothing has happened yet.
RawHandler = Callable[[Connection, memoryview, int, int, int], bool]


class Entry(NamedTuple):
    """An API whose handler has been imported."""

    request: type
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


# The size, api key, version, correlation id and client id length of a request.
_HEADER = Struct(">hhih")
_FRAME_START = Struct(">ii")


class Dispatcher:
    """Serves the frames of every connection of one listener's kind."""

    def __init__(self, broker: "Broker", served: dict[int, Served]) -> None:
        self.served = served
        self._broker = broker
        self._entries: dict[int, Entry] = {}
        self.serve: Serve = self._serve_one  # What connections call; a fast path may come before.

    def _serve_one(
        self, connection: Connection, frame: memoryview, position: int, end: int, _limit: int
    ) -> int:
        self._serve(connection, frame, position, end)
        return end

    def _serve(self, connection: Connection, frame: memoryview, position: int, end: int) -> None:
        broker = self._broker
        try:
            api_key, version, correlation_id, length = _HEADER.unpack_from(frame, position)
            entry = self._entries.get(api_key) or self._load(api_key)
            start = position
            client_id_start = position = start + _HEADER.size
            if length > 0:
                position += length
            if position > end:
                raise ProtocolError("a header longer than its frame")
            if version not in entry.versions and api_key != ApiKey.API_VERSIONS:
                raise ProtocolError(f"{_name(api_key)} version {version} is not served here")
            if version >= entry.flexible_since:
                count = frame[position]  # Tagged fields of the header: nobody sends any.
                position += 1
                if count:
                    position = skip_tags(frame, position, end, count)
            broker.metrics.requests[api_key] += 1
            if (
                entry.raw is not None
                and not broker.faults.waiting
                and entry.raw(connection, frame, start, position, end)
            ):
                return
            name = frame[client_id_start : client_id_start + max(length, 0)]
            client_id = str(name, "utf-8", "replace")
            reply = Reply(connection, correlation_id, version, client_id)
            connection.expect(reply)
            self._serve_decoded(entry, api_key, frame[position:end], reply)
        except (ProtocolError, struct_error, IndexError, UnicodeDecodeError) as error:
            broker.metrics.protocol_errors += 1
            logger.warning("closing the connection from %s: %s", connection.remote, error)
            connection.close()
        except AssertionError:
            raise  # A bug in what keeps the data: the process ends rather than go on.
        except Exception:
            # One connection's request never harms another's, whatever a fast path did not expect.
            broker.metrics.server_errors += 1
            logger.exception("closing the connection from %s", connection.remote)
            connection.close()

    def _serve_decoded(self, entry: Entry, api_key: int, body: memoryview, reply: Reply) -> None:
        if reply.version not in entry.versions:
            request: Any = None  # Only ApiVersions comes here: it answers what it would know.
        else:
            request, _ = decode_from(entry.request, body, 0, reply.version)
        broker = self._broker
        if broker.faults.waiting and (fault := broker.faults.take(api_key)) is not None:
            spoiled = fault(request, reply, broker)
            if spoiled is None:
                return
            reply = spoiled
        if entry.is_async:
            broker.spawn(self._run(entry, api_key, request, reply))
        else:
            try:
                entry.handle(request, reply, broker)
            except Exception as error:  # noqa: BLE001  Whatever it is, the client gets an answer.
                self._failed(api_key, request, reply, error)

    async def _run(self, entry: Entry, api_key: int, request: Any, reply: Reply) -> None:  # noqa: ANN401
        context = Context(reply.version, reply.client_id, reply.connection)
        try:
            send(reply, await entry.handle(request, context, self._broker))
        except Exception as error:  # noqa: BLE001
            self._failed(api_key, request, reply, error)

    def _failed(self, api_key: int, request: object, reply: Reply, error: Exception) -> None:
        """Answer with an error what can be; a failed assert is a bug that ends the process."""
        if isinstance(error, AssertionError):
            raise error
        code, message = ErrorCode.UNKNOWN_SERVER_ERROR, None
        if isinstance(error, Refusal):
            code, message = error.code, error.message
        else:
            self._broker.metrics.server_errors += 1
            logger.error("%s failed", _name(api_key), exc_info=error)
        from ottla.broker.error_responses import error_response

        if reply.pieces is None:
            try:
                send(reply, error_response(api_key, request, reply.version, code, message))
            except ValueError:  # It is too long for any answer.
                reply.connection.close()

    def _load(self, api_key: int) -> Entry:
        served = self.served.get(api_key)
        if served is None:
            raise ProtocolError(f"{_name(api_key)} is not served here")
        module = import_module(f"ottla.broker.handlers.{served.module}")
        handler = module.handle
        request = handler.request_class
        entry = Entry(
            request,
            handler,
            # Produce is advertised from 0 for old clients, but its first three versions are gone.
            range(
                max(served.versions.start, request.VERSIONS.start),
                min(served.versions.stop, request.VERSIONS.stop),
            ),
            request.FLEXIBLE_SINCE,
            inspect.iscoroutinefunction(handler),
            module.raw_handler(self._broker) if hasattr(module, "raw_handler") else None,
        )
        self._entries[api_key] = entry
        return entry


def send(reply: Reply, response: Any) -> None:  # noqa: ANN401
    """Encode a response with its header and put it into its place."""
    if reply.connection.is_closed:
        return
    frame = bytearray(8)
    cls = type(response)
    if reply.version >= cls.FLEXIBLE_SINCE and cls.API_KEY != ApiKey.API_VERSIONS:
        frame.append(0)  # The response header's tagged fields: none.
    encode_into(response, reply.version, frame)
    _FRAME_START.pack_into(frame, 0, len(frame) - 4, reply.correlation_id)
    reply.complete((bytes(frame),))


def _name(api_key: int) -> str:
    try:
        return ApiKey(api_key).name
    except ValueError:
        return f"api key {api_key}"
