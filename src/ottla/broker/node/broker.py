"""A broker: everything it is made of, built once, started in order and stopped in reverse.

The directories come first, then the metadata log, the partitions it names, and last the listeners'
doors: nobody is let in before everything can be served.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from ottla.broker.controller.metadata_log_settings import metadata_log_settings
from ottla.broker.controller.quorum_driver import QuorumDriver
from ottla.broker.controller.quorum_settings import controller_settings, quorum_settings
from ottla.broker.coordinators.coordinators import Coordinators
from ottla.broker.coordinators.group_kind import GroupCoordinators, GroupKind
from ottla.broker.fetch.sessions import FetchSessions
from ottla.broker.liveness.death_watch import DeathWatch
from ottla.broker.liveness.lifecycle import Lifecycle
from ottla.broker.liveness.peer_liveness import PeerLiveness
from ottla.broker.metrics.cluster_gauges import ClusterGauges
from ottla.broker.metrics.metrics import Metrics
from ottla.broker.node.directory_format import bootstrap_records
from ottla.broker.node.housekeeping import Housekeeping
from ottla.broker.partitions.cleaner import Cleaner
from ottla.broker.partitions.log_directories import LogDirectories
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.partitions.replica_loader import ReplicaLoader
from ottla.broker.partitions.scrubber import Scrubber
from ottla.broker.produce.prepared_produce import PreparedProduces
from ottla.broker.produce.producer_ids import ProducerIds
from ottla.broker.replicas.directories import ReplicaDirectories
from ottla.broker.replicas.replicas import Replicas
from ottla.broker.settings.settings import Settings
from ottla.broker.wire.apis import Listener
from ottla.broker.wire.batch_scans import BatchScans
from ottla.broker.wire.connection import Serve
from ottla.broker.wire.connections import Connections
from ottla.broker.wire.deciders import Deciders
from ottla.broker.wire.dispatch import Dispatcher
from ottla.broker.wire.faults import Faults
from ottla.broker.wire.memory import RequestMemory
from ottla.env.environment import Environment
from ottla.env.network import Address, Channel, Listening, Peer, SocketOptions
from ottla.metadata.image.cluster import BROKER_RESOURCE, Topic
from ottla.metadata.image.delta import ImageDelta
from ottla.metadata.image.image import ClusterImage
from ottla.model.principal import Origin
from ottla.model.types import Millis, Monotonic, NodeId

logger = logging.getLogger(__name__)

HAND_OVER_MS_MAX = 2000  # Until all voters know that this node leads them no more.


class Broker:
    def __init__(self, settings: Settings, env: Environment) -> None:
        self.settings = settings
        self.env = env
        self.node_id: NodeId = settings.node_id
        self.addresses: dict[str, Address] = {}  # Where each listener really is.
        self.metrics = Metrics()
        self.faults = Faults()
        self.memory = RequestMemory(settings.queued_max_request_bytes)
        self.memory.flush = self._before_sending
        self.fetch_sessions = FetchSessions(
            settings.max_incremental_fetch_session_cache_slots,
            env.random.randrange,
            lambda: self.image.partition_count,
        )
        self.scans = BatchScans(env.workers, env.clock.monotonic, self.call_soon)
        self.prepared_produces = PreparedProduces(self)
        self.connections = Connections(
            lambda: self.settings, self.memory, env.clock.monotonic, self.metrics, env.network
        )
        self.directories = LogDirectories(settings, env, self._directory_failed)
        self._replica_loader = ReplicaLoader(settings, env, self.directories)
        self.partitions = Partitions(self, self.directories, self._partitions_hosted)
        self.peer_liveness = PeerLiveness(self)
        self.death_watch = DeathWatch(self, self.peer_liveness)
        self.replica_directories = ReplicaDirectories(self, self.partitions, self.directories)
        self.replicas = Replicas(
            self,
            self.partitions,
            self.metrics,
            self.peer_liveness,
            self.replica_directories.heard_leader,
        )
        self.lifecycle = Lifecycle(self, self.directories, self.replica_directories)
        self.producer_ids = ProducerIds(self)
        self.groups: GroupCoordinators = Coordinators(GroupKind(self), self, self.partitions)
        self._connect_parts()
        self.quorum: QuorumDriver
        self.dispatchers: dict[str, Dispatcher] = {}  # By listener.
        self.failed: asyncio.Future[None]  # Done, with the reason, if the broker cannot go on.
        self.cleaner = Cleaner(self, self.partitions, self.directories, self.metrics)
        self.scrubber = Scrubber(self, self.partitions)
        self.cluster_gauges = ClusterGauges(self, self.metrics)
        self._housekeeping = Housekeeping(
            self, self.connections, self.partitions, self.directories, self.metrics
        )
        self._listening: dict[str, Listening] = {}  # By listener.
        self._open: set[str] = set()  # The listeners whose doors are open.
        self._tasks: dict[asyncio.Task[None], None] = {}  # In the order in which they began.
        self._loop: asyncio.AbstractEventLoop

    def _connect_parts(self) -> None:
        """What a part has to tell one that is built after it."""
        self.lifecycle.on_registered_again = self.replicas.registered_again
        self.partitions.replication = self.replicas
        self.partitions.on_changed = self.prepared_produces.forget
        self.partitions.on_damaged = self.replica_directories.damaged
        self.partitions.on_room = self.replica_directories.tell_all

    @property
    def now(self) -> Monotonic:
        return self.env.clock.monotonic()

    @property
    def image(self) -> ClusterImage:
        return self.quorum.image

    @property
    def broker_epoch(self) -> int:
        return self.lifecycle.broker_epoch

    @property
    def is_registered(self) -> bool:
        return self.lifecycle.is_registered

    @property
    def is_active_controller(self) -> bool:
        return self.quorum.is_leader

    @property
    def voter_count(self) -> int:
        return self.quorum.voter_count

    async def submit(self, request: object, origin: Origin | None = None) -> Any:  # noqa: ANN401
        return await self.quorum.requests.submit(request, origin)

    async def start(self) -> None:
        """Raises one clear sentence (OSError, SettingsError, Damaged ...) if it cannot be."""
        try:
            await self._start()
        except BaseException:
            await self._close()
            self.directories.abandon()
            raise

    async def _start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.failed = self._loop.create_future()
        self.env.network.before_sending = self._before_sending
        self.directories.open()
        await self._bind()
        self.quorum = QuorumDriver(
            self.env,
            self.directories.identities.node(),
            controller_settings(self.settings),
            metadata_log_settings(self.settings),
            bootstrap_records(
                self.env.disk,
                self.settings.metadata_log_dir,
                isr_min=self.settings.min_insync_replicas,
            ),
            quorum_settings(self.settings, self.addresses),
        )
        self.quorum.open()
        if not self.quorum.is_alone:
            self._open_doors(self.settings.controller_listener_names)  # Others wait for our vote.
        self.quorum.commits.on_began = self.death_watch.controller_began
        await self.quorum.join()
        if any(resource_type == BROKER_RESOURCE for resource_type, _ in self.image.configs):
            self._resolve_settings()
        self.replicas.settings_changed()
        self._replica_loader.load(self.image)
        self.partitions.load()
        self.peer_liveness.load()
        self.quorum.commits.subscribe(self._image_changed)
        self.spawn(self.quorum.commits.run())
        if self.settings.is_controller:
            await self.lifecycle.register_controller()
        if self.settings.is_broker:
            await self.lifecycle.register()
        self._housekeeping.start()
        self.cleaner.start()
        self.scrubber.start()
        self.partitions.delete_moved()
        self.partitions.host_elsewhere()
        self.replicas.start()
        self.groups.start()
        self._open_doors(list(self._listening))

    async def stop(self) -> None:
        """Stop cleanly: what follows needs no recovery."""
        if not self.quorum.is_alone:
            if self.settings.is_broker:
                await self.lifecycle.hand_over()
            await self.quorum.hand_over(HAND_OVER_MS_MAX)
        await self._close()
        marks = self.partitions.high_watermarks()
        try:
            if self.quorum.is_alone:
                await self.lifecycle.shut_down()
            self.quorum.close()
            self.directories.close(self.lifecycle.broker_epoch, marks)
        except OSError as error:
            logger.error("cannot stop cleanly, the next start will recover: %s", error)
            await self.quorum.abandon()
            self.directories.abandon()

    async def abort(self) -> None:
        """Stop as `kill -9` would, as far as the files can tell."""
        await self._close()
        await self.quorum.abandon()
        self.directories.abandon()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` beside everything else; a failure in it ends the broker."""
        task = self._loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._finished)

    def call_later(self, delay_ms: Millis, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_later(delay_ms / 1000, self._call, callback)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call back when this turn of the loop is over."""
        self._loop.call_soon(self._call, callback)

    async def _bind(self) -> None:
        options = SocketOptions(
            self.settings.socket_listen_backlog_size,
            self.settings.socket_receive_buffer_bytes,
            self.settings.socket_send_buffer_bytes,
        )
        for endpoint in self.settings.listeners:
            is_controller = endpoint.name in self.settings.controller_listener_names
            dispatcher = Dispatcher(
                self,
                Listener.CONTROLLER if is_controller else Listener.BROKER,
                Deciders(
                    self._decide if is_controller else self.submit,
                    self._ask_quorum,
                    self._ask_leader,
                ),
            )
            self.dispatchers[endpoint.name] = dispatcher
            if not is_controller:
                dispatcher.serve = self.prepared_produces.before(dispatcher.serve)
            accept = partial(self._accept, endpoint.name, dispatcher.serve)
            listening = await self.env.network.listen(endpoint.host, endpoint.port, accept, options)
            self._listening[endpoint.name] = listening
            self.addresses[endpoint.name] = listening.address

    async def _decide(self, request: object, _: Origin) -> Any:  # noqa: ANN401
        return await self.quorum.requests.decide(request)

    def _ask_quorum(self, request: Any, on_answer: Callable[[Any], None]) -> None:  # noqa: ANN401
        self.quorum.shell.request(request, on_answer)

    async def _ask_leader(self, request: object, origin: Origin) -> Any:  # noqa: ANN401
        return await self.quorum.requests.change_voters(request, origin)

    def _open_doors(self, listeners: list[str]) -> None:
        for name in listeners:
            if name in self._listening and name not in self._open:
                self._open.add(name)
                self._listening[name].start()

    def _accept(self, listener: str, serve: Serve, channel: Channel) -> Peer:
        return self.connections.accept(channel, listener, serve)

    def _before_sending(self) -> None:
        """The turn's flush. It is no request's work: an exception in it ends the broker."""
        try:
            self.partitions.flush()
            self.memory.flushed()
            while self.partitions.staged:  # By those who had waited for the memory.
                self.partitions.flush()
                self.memory.flushed()
            self.prepared_produces.forget_time()
            self._housekeeping.flushed()
        except Exception as error:
            self._fail(error)
            raise

    def _image_changed(self, delta: ImageDelta) -> None:
        """A stretch of the metadata log was committed: become what it says."""
        if any(resource_type == BROKER_RESOURCE for resource_type, _ in delta.configs):
            self._resolve_settings()
            self.replicas.settings_changed()
            self.partitions.reconfigure_all()
        for part in (
            self.partitions,
            self.replicas,
            self.groups,
            self.replica_directories,
            self.lifecycle,
            self.cluster_gauges,
            self.peer_liveness,
        ):
            part.image_changed(delta)

    def _partitions_hosted(self, topics: list[Topic]) -> None:
        """Those that were too many to be hosted in the turn that brought them."""
        delta = ImageDelta(changed=[(topic, topic) for topic in topics])
        self.groups.image_changed(delta)
        self.replica_directories.image_changed(delta)

    def _resolve_settings(self) -> None:
        """What the cluster has set for its brokers, or for this one, over what the file says."""
        self.settings = self.settings.with_dynamic(
            self.image.config_of(BROKER_RESOURCE, ""),
            self.image.config_of(BROKER_RESOURCE, str(self.node_id)),
        )

    def _directory_failed(self, path: str, error: OSError) -> None:
        """A log directory is lost, with its partitions; the last one takes the broker along."""
        for partition in self.partitions.all():
            directory = self.directories.of(partition.log)
            if directory.path == path:
                self.partitions.take_offline(partition)
                self.replica_directories.lost(partition, directory)
        if self.directories.is_needed(path):
            self._fail(error)
        elif self.lifecycle.is_registered:  # Else the registration will say it.
            self.spawn(self.lifecycle.tell_offline())

    async def _close(self) -> None:
        for listening in self._listening.values():
            listening.close()
        self._before_sending()
        self.connections.close_all()
        self._housekeeping.stop()
        self.replicas.stop()
        self.groups.stop()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.partitions.sync.wait_idle()
        await self.partitions.checkpoints.wait_idle()

    def _call(self, callback: Callable[[], None]) -> None:
        """A timer is due. What fails in it is nobody's request: it is told, or ends the broker."""
        try:
            callback()
        except AssertionError as error:
            self._fail(error)
        except Exception:
            self.metrics.server_errors += 1
            logger.exception("a timer failed")

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        logger.critical("the broker cannot go on: %s", error, exc_info=error)
        if not self.failed.done():
            self.failed.set_exception(error)
            self.failed.exception()  # A start that fails has nobody who waits for it.
