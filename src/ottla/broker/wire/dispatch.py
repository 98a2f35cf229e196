"""From a frame to its handler: the header, the way that `apis.py` names, and what an error becomes.

A handler's module, and the messages it needs, are imported with the first request of their API.
Every handler is given the request, its `Reply` and the broker. A plain call answers through the
reply; a coroutine returns its response.
"""

import inspect
import logging
from importlib import import_module
from struct import Struct
from typing import Any, Final, Protocol

from ottla.broker.context import BrokerContext
from ottla.broker.metrics.metrics import Metrics
from ottla.broker.wire.apis import (
    APIS,
    Api,
    Entry,
    Handler,
    Listener,
    RawHandler,
    Way,
    error_response,
    served_on,
)
from ottla.broker.wire.batch_scans import BatchScans
from ottla.broker.wire.connection import Connection, Reply, Serve
from ottla.broker.wire.connections import Connections
from ottla.broker.wire.deciders import Deciders
from ottla.broker.wire.envelopes import EnvelopedReply, unwrap
from ottla.broker.wire.faults import Faults
from ottla.broker.wire.memory import RequestMemory
from ottla.broker.wire.request_budget import cost_us, decode_request
from ottla.broker.wire.responses import send
from ottla.model.errors import ErrorCode, ProtocolError, Refusal
from ottla.protocol.apis import ApiKey
from ottla.protocol.varint import skip_tags
from ottla.quorum.messages import without_endpoints

# ruff: noqa: ANN401  Requests and responses are of whatever class their API has.

logger = logging.getLogger(__name__)


class DispatchContext(BrokerContext, Protocol):
    """What every request is counted, bounded and scheduled by."""

    @property
    def metrics(self) -> Metrics: ...
    @property
    def faults(self) -> Faults: ...
    @property
    def scans(self) -> BatchScans: ...
    @property
    def memory(self) -> RequestMemory: ...
    @property
    def connections(self) -> Connections: ...


# A longer client id is cut: a member's id is made of it, and that has to fit a string even where
# each byte was replaced by the three of U+FFFD.
CLIENT_ID_BYTES_MAX: Final = 10_900

# The size, api key, version, correlation id and client id length of a request.
_HEADER = Struct(">hhih")


class Dispatcher:
    """Serves the frames of every connection of one listener's kind."""

    def __init__(self, context: DispatchContext, listener: Listener, deciders: Deciders) -> None:
        self.served = served_on(listener)
        self._context = context
        self._listener = listener
        self._deciders = deciders
        self._entries: dict[int, Entry] = {}
        self.serve: Serve = self._serve  # What connections call; a fast path may come before.

    def _serve(
        self, connection: Connection, frame: memoryview, position: int, end: int, _limit: int
    ) -> int:
        """Serve one request, or hold its connection until there is time to serve it.

        Raises whatever its bytes raise: the connection's guard decides.
        """
        context = self._context
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
        is_paid, connection.is_paid = connection.is_paid, False
        if (
            entry.raw is not None
            and not is_paid  # Else it was refused there.
            and not context.faults.waiting
            and entry.raw(connection, frame, start, position, end)
        ):
            return end
        us = cost_us(api_key, end - position, is_async=entry.is_async)
        if us and not is_paid and not context.scans.budget.take_share(us):
            connection.hold()
            context.spawn(self._pay(connection, us))
            return start - 4
        context.metrics.requests[api_key] += 1
        name = frame[client_id_start : client_id_start + min(max(length, 0), CLIENT_ID_BYTES_MAX)]
        client_id = str(name, "utf-8", "replace")
        reply = Reply(connection, correlation_id, version, client_id, self._deciders)
        connection.expect(reply)
        self._serve_body(entry, api_key, frame[position:end], reply)
        return end

    async def _pay(self, connection: Connection, us: int) -> None:
        """Let a held connection go on in a turn that has the time for its next request."""
        await self._context.scans.budget.wait(us)
        connection.is_paid = True
        connection.release()

    def _serve_body(self, entry: Entry, api_key: int, body: memoryview, reply: Reply) -> None:
        if reply.version not in entry.versions:
            request: Any = None  # Only ApiVersions comes here: it answers what it would know.
        else:
            request = decode_request(entry.request, body, reply.version, self._context.image)
        faults = self._context.faults
        if faults.waiting and (fault := faults.take(api_key)) is not None:
            spoiled = fault(request, reply, self._context)
            if spoiled is None:
                return
            reply = spoiled
        self._handle(entry, request, reply)

    def _handle(self, entry: Entry, request: Any, reply: Reply) -> None:
        if entry.is_async:
            if self._listener is Listener.BROKER:
                # As Kafka does: else one client could have hundreds of these wait before another's
                # first. Brokers and their controller must not wait for each other's decisions.
                reply.connection.hold()
            self._context.spawn(self._run(entry, request, reply))
        else:
            try:
                entry.handle(request, reply, self._context)
            except Exception as error:  # noqa: BLE001  Whatever it is, the client gets an answer.
                self._failed(entry, request, reply, error)

    async def _run(self, entry: Entry, request: Any, reply: Reply) -> None:
        try:
            send(reply, await entry.handle(request, reply, self._context))
        except Exception as error:  # noqa: BLE001
            self._failed(entry, request, reply, error)
        finally:
            if self._listener is Listener.BROKER:
                reply.connection.release()

    def _failed(self, entry: Entry, request: object, reply: Reply, error: Exception) -> None:
        """Answer with an error what can be; a failed assert is a bug that ends the process."""
        if isinstance(error, AssertionError):
            raise error
        api_key = entry.request.API_KEY
        code, message = ErrorCode.UNKNOWN_SERVER_ERROR, None
        if isinstance(error, Refusal):
            code, message = error.code, error.message
        else:
            self._context.metrics.server_errors += 1
            logger.error("%s failed", _name(api_key), exc_info=error)
        if reply.pieces is not None:
            return
        if code == ErrorCode.NOT_CONTROLLER and isinstance(reply, EnvelopedReply):
            # The broker that forwarded it sends it to the active controller.
            api_key, reply = ApiKey.ENVELOPE, reply.envelope
        send(reply, error_response(api_key, request, reply.version, code, message))

    def _load(self, api_key: int) -> Entry:
        api = APIS.get(api_key)
        way = None if api is None else api.way(self._listener)
        if api is None or way is None:
            raise ProtocolError(f"{_name(api_key)} is not served here")
        handler, request, raw = self._found(api, way)
        versions = api.versions_on(self._listener)
        entry = Entry(
            request,
            handler,
            # Produce is advertised from 0 for old clients, but its first three versions are gone.
            range(
                max(versions.start, request.VERSIONS.start),
                min(versions.stop, request.VERSIONS.stop),
            ),
            request.FLEXIBLE_SINCE,
            inspect.iscoroutinefunction(handler),
            raw,
        )
        self._entries[api_key] = entry
        return entry

    def _found(self, api: Api, way: Way) -> tuple[Handler, type[Any], RawHandler | None]:
        if way is Way.HANDLER:
            module = import_module(f"ottla.broker.handlers.{api.key.name.lower()}")
            raw = module.raw_handler(self._context) if hasattr(module, "raw_handler") else None
            return module.handle, module.handle.request_class, raw
        handler: Handler = {
            Way.DECISION: _decide,
            Way.ENVELOPE: self._unwrap,
            Way.QUORUM: self._pass_on if self._listener is Listener.BROKER else self._ask_quorum,
        }[way]
        return handler, api.messages.Request, None

    def _entry(self, api_key: int) -> Entry:
        return self._entries.get(api_key) or self._load(api_key)

    def _unwrap(self, request: Any, reply: Reply, _: object) -> None:
        self._handle(*unwrap(request, reply, self._context, self._entry))

    async def _pass_on(self, request: Any, reply: Reply, _: object) -> Any:
        return await self._deciders.ask_leader(request, reply.origin)

    def _ask_quorum(self, request: Any, reply: Reply, _: object) -> None:
        def answer(response: Any) -> None:
            if response is None:  # It was about another log, or nobody can answer it now.
                reply.connection.close()
            else:
                without_endpoints(response, reply.version)
                send(reply, response)

        self._deciders.ask_quorum(request, answer)


async def _decide(request: Any, reply: Reply, _: object) -> Any:
    return await reply.submit(request)


def _name(api_key: int) -> str:
    try:
        return ApiKey(api_key).name
    except ValueError:
        return f"api key {api_key}"
