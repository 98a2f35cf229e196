"""The controller: a pure state machine whose log is the metadata log.

Commands are the wire's own requests. `decide` returns the records of one decision, which are
written in one batch, and the answer that is released once they are committed. The subjects have
modules of their own; here is only who decides what, and what time brings.
"""

from collections.abc import Callable
from typing import Any

from ottla.metadata import brokers, registrations
from ottla.metadata.config_changes import alter_configs_incrementally, replace_configs
from ottla.metadata.decisions import ControllerSettings, Outcome, Surroundings
from ottla.metadata.image import ClusterImage
from ottla.metadata.partition_creation import create_partitions
from ottla.metadata.producer_id_blocks import allocate_producer_ids
from ottla.metadata.sessions import Sessions
from ottla.metadata.topic_creation import create_topics
from ottla.metadata.topic_deletion import delete_topics
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.machine import Decision, Ticket
from ottla.model.types import Monotonic, NodeId, Offset, Uuid
from ottla.protocol.messages import (
    allocate_producer_ids as allocate_producer_ids_wire,
)
from ottla.protocol.messages import (
    alter_configs,
    assign_replicas_to_dirs,
    broker_heartbeat,
    broker_registration,
    controller_registration,
    incremental_alter_configs,
    unregister_broker,
)
from ottla.protocol.messages import create_partitions as create_partitions_wire
from ottla.protocol.messages import create_topics as create_topics_wire
from ottla.protocol.messages import delete_topics as delete_topics_wire
from ottla.protocol.metadata_records import MetadataRecord, RegisterBrokerRecord

Reply = Any  # The response to the request, or the Refusal that a handler turns into one.


class Controller:
    def __init__(
        self,
        cluster_id: str,
        settings: ControllerSettings,
        *,
        below: Callable[[int], int],
        new_uuid: Callable[[], Uuid],
    ) -> None:
        self.image = ClusterImage(cluster_id)
        self._around = Surroundings(self.image, settings, below, new_uuid)
        self._sessions = Sessions(settings.broker_session_timeout_ms, settings.node_id)
        self._registered_at: dict[NodeId, Offset] = {}

    @property
    def next_offset(self) -> Offset:
        """Where the next decision will be written."""
        return self.image.offset + 1

    def decide(self, ticket: Ticket, command: object, now: Monotonic) -> Decision[Any, Reply]:
        self.image.take_delta()  # Nobody asks this image what changed; it must not remember it.
        try:
            outcome = self._decide(command, now)
        except Refusal as refusal:
            return Decision([], [(ticket, refusal)])
        return Decision(outcome.records, [(ticket, outcome.response)])

    def apply(self, offset: Offset, record: MetadataRecord) -> None:
        self.image.apply(offset, record)
        if type(record) is RegisterBrokerRecord:
            self._registered_at[NodeId(record.broker_id)] = offset

    def passed(self, offset: Offset) -> None:
        """The log holds something at `offset` that is not the controller's: a control record."""
        self.image.offset = offset

    def tick(self, now: Monotonic) -> Decision[Any, Reply]:
        """Fence one broker that has been silent too long; the next tick sees what that changed."""
        for node in self._sessions.expired(now):
            self._sessions.forget(node)
            broker = self.image.brokers.get(node)
            if broker is not None and not broker.is_fenced:
                return Decision(brokers.fence(self._around, broker))
        return Decision()

    def next_deadline(self) -> Monotonic | None:
        return self._sessions.next_deadline()

    def _decide(self, command: object, now: Monotonic) -> Outcome:
        subject = _SUBJECTS.get(type(command))
        if subject is not None:
            return subject(self._around, command)
        match command:
            case broker_registration.Request():
                return brokers.register(
                    self._around, self._sessions, command, self.next_offset, now
                )
            case broker_heartbeat.Request():
                registered_at = self._registered_at.get(NodeId(command.broker_id), 0)
                return brokers.heartbeat(self._around, self._sessions, command, registered_at, now)
            case unregister_broker.Request():
                return brokers.unregister(self._around, self._sessions, command)
        raise Refusal(ErrorCode.UNSUPPORTED_VERSION, f"no controller decides {type(command)}")


_SUBJECTS: dict[type, Callable[[Surroundings, Any], Outcome]] = {
    create_topics_wire.Request: create_topics,
    delete_topics_wire.Request: delete_topics,
    create_partitions_wire.Request: create_partitions,
    incremental_alter_configs.Request: alter_configs_incrementally,
    alter_configs.Request: replace_configs,
    allocate_producer_ids_wire.Request: allocate_producer_ids,
    controller_registration.Request: registrations.register_controller,
    assign_replicas_to_dirs.Request: registrations.assign_directories,
}
