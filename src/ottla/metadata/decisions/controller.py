"""The controller: a pure state machine whose log is the metadata log.

Commands are wire requests. `decide` returns the records of one decision, written in one batch, and
the response, released once they are committed. Decisions are made in a module per subject; this
module dispatches to them and runs the timers.
"""

from collections.abc import Callable
from typing import Any

from ottla.metadata.decisions import (
    brokers,
    leader_elections,
    reassignments,
    rebalance,
    registrations,
)
from ottla.metadata.decisions.config_changes import alter_configs_incrementally, replace_configs
from ottla.metadata.decisions.context import ControllerSettings, DecisionContext, Outcome
from ottla.metadata.decisions.feature_updates import update_features
from ottla.metadata.decisions.isr_changes import alter_partitions
from ottla.metadata.decisions.partition_creation import create_partitions
from ottla.metadata.decisions.producer_id_blocks import allocate_producer_ids
from ottla.metadata.decisions.sessions import Sessions
from ottla.metadata.decisions.topic_creation import create_topics
from ottla.metadata.decisions.topic_deletion import delete_topics
from ottla.metadata.image.image import ClusterImage
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.machine import Decision, Producer, Ticket, Verdict
from ottla.model.types import Millis, Monotonic, NodeId, Offset, Uuid
from ottla.protocol.messages import (
    allocate_producer_ids as allocate_producer_ids_wire,
)
from ottla.protocol.messages import (
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    assign_replicas_to_dirs,
    broker_heartbeat,
    broker_registration,
    controller_registration,
    elect_leaders,
    incremental_alter_configs,
    list_partition_reassignments,
    unregister_broker,
)
from ottla.protocol.messages import create_partitions as create_partitions_wire
from ottla.protocol.messages import create_topics as create_topics_wire
from ottla.protocol.messages import delete_topics as delete_topics_wire
from ottla.protocol.messages import update_features as update_features_wire
from ottla.protocol.metadata_records import MetadataRecord

Reply = Any  # The response, or the Refusal that a handler turns into one.


class Controller:
    def __init__(
        self,
        cluster_id: str,
        settings: ControllerSettings,
        *,
        below: Callable[[int], int],
        new_uuid: Callable[[], Uuid],
        image: ClusterImage | None = None,
    ) -> None:
        """`image` is the committed state, owned by this controller from now on."""
        self.image = image or ClusterImage(cluster_id)
        self._sessions = Sessions(settings.broker_session_timeout_ms, settings.node_id)
        has_contacted = self._sessions.has_contacted
        self._context = DecisionContext(self.image, settings, below, new_uuid, has_contacted)
        self._balance_at: Monotonic | None = None
        self._elect_uncleanly_at: Monotonic | None = None
        self._rebalance_at: Monotonic | None = None
        self._absences = rebalance.Absences()

    def activated(self, now: Monotonic) -> None:
        """This controller becomes active at `now`: every broker gets a full session."""
        settings = self._context.settings
        for broker in self.image.brokers.values():
            if not broker.is_fenced:
                self._sessions.begin(broker.id, now)
        self._balance_at = _after(now, settings.leader_imbalance_check_interval_ms)
        self._elect_uncleanly_at = _after(now, settings.unclean_election_check_interval_ms)
        self._rebalance_at = _after(now, settings.rebalance_interval_ms)

    def silent_brokers(self, now: Monotonic, silent_ms: Millis) -> list[NodeId]:
        """Brokers with a session but without a heartbeat for `silent_ms`, to be probed."""
        return sorted(
            broker.id
            for broker in self.image.brokers.values()
            if (silent := self._sessions.silent_for(broker.id, now)) is not None
            and silent >= silent_ms
        )

    @property
    def next_offset(self) -> Offset:
        """Offset of the next decision."""
        return self.image.offset + 1

    def decide(self, ticket: Ticket, command: object, now: Monotonic) -> Decision[Any, Reply]:
        self.image.take_delta()  # This image has no subscribers; drop its delta.
        try:
            outcome = self._decide(command, now)
        except Refusal as refusal:
            return Decision([], [(ticket, refusal)])
        return Decision(outcome.records, [(ticket, outcome.response)])

    def apply(self, offset: Offset, record: MetadataRecord, _: Producer | None = None) -> None:
        self.image.apply(offset, record)

    def ended(self, producer: Producer, verdict: Verdict) -> None:
        raise AssertionError(f"{producer} has no place in the metadata log: {verdict}")

    def passed(self, offset: Offset) -> None:
        """`offset` holds a control record, which is not the controller's."""
        self.image.offset = offset

    def tick(self, now: Monotonic) -> Decision[Any, Reply]:
        """Run the next due timer, one per tick: the next tick sees its effect."""
        self.image.take_delta()
        expired = self._sessions.expired(now)
        for node in expired:
            self._sessions.forget(node)
        if fenced := brokers.expire(self._context, expired):
            return Decision(fenced)
        return Decision(self._elections(now) or self._moves(now))

    def _elections(self, now: Monotonic) -> list[Any]:
        settings = self._context.settings
        is_balanced = settings.is_leadership_balanced
        if is_balanced and self._balance_at is not None and now >= self._balance_at:
            changes = leader_elections.balance(self._context)
            if len(changes) < leader_elections.ELECTIONS_MAX:  # Else the next tick continues.
                self._balance_at = _after(now, settings.leader_imbalance_check_interval_ms)
            return list(changes)
        if self._elect_uncleanly_at is not None and now >= self._elect_uncleanly_at:
            changes = leader_elections.elect_uncleanly(self._context)
            if len(changes) < leader_elections.ELECTIONS_MAX:
                self._elect_uncleanly_at = _after(now, settings.unclean_election_check_interval_ms)
            return list(changes)
        return []

    def _moves(self, now: Monotonic) -> list[Any]:
        settings = self._context.settings
        if not settings.is_rebalanced or self._rebalance_at is None or now < self._rebalance_at:
            return []
        self._rebalance_at = _after(now, settings.rebalance_interval_ms)
        self._absences.look(self.image, now)
        lost = self._absences.longer_than(settings.rebalance_lost_after_ms, now)
        homeless = self._absences.homeless_longer_than(settings.rebalance_lost_after_ms, now)
        moves_max = settings.rebalance_moves_max
        return list(rebalance.next_moves(self._context, lost, moves_max, homeless))

    def next_deadline(self) -> Monotonic | None:
        """A single broker needs no fencing, rebalancing or elections."""
        if len(self.image.brokers) < 2:
            return self._sessions.next_deadline()
        balance_at = self._balance_at if self._context.settings.is_leadership_balanced else None
        rebalance_at = self._rebalance_at if self._context.settings.is_rebalanced else None
        deadlines = (
            self._sessions.next_deadline(),
            balance_at,
            self._elect_uncleanly_at,
            rebalance_at,
        )
        return min((d for d in deadlines if d is not None), default=None)

    def _decide(self, command: object, now: Monotonic) -> Outcome:
        subject = _SUBJECTS.get(type(command))
        if subject is not None:
            return subject(self._context, command)
        match command:
            case broker_registration.Request():
                return brokers.register(
                    self._context, self._sessions, command, self.next_offset, now
                )
            case broker_heartbeat.Request():
                return brokers.heartbeat(self._context, self._sessions, command, now)
            case unregister_broker.Request():
                return brokers.unregister(self._context, self._sessions, command)
            case brokers.Died():
                return brokers.died(self._context, self._sessions, command)
        raise Refusal(ErrorCode.UNSUPPORTED_VERSION, f"no controller decides {type(command)}")


def _after(now: Monotonic, delay_ms: Millis) -> Monotonic:
    return Monotonic(now + delay_ms)


_SUBJECTS: dict[type, Callable[[DecisionContext, Any], Outcome]] = {
    create_topics_wire.Request: create_topics,
    delete_topics_wire.Request: delete_topics,
    create_partitions_wire.Request: create_partitions,
    incremental_alter_configs.Request: alter_configs_incrementally,
    alter_configs.Request: replace_configs,
    allocate_producer_ids_wire.Request: allocate_producer_ids,
    controller_registration.Request: registrations.register_controller,
    assign_replicas_to_dirs.Request: registrations.assign_directories,
    alter_partition.Request: alter_partitions,
    elect_leaders.Request: leader_elections.elect_leaders,
    alter_partition_reassignments.Request: reassignments.alter_reassignments,
    list_partition_reassignments.Request: reassignments.list_reassignments,
    update_features_wire.Request: update_features,
}
