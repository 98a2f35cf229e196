"""Settings of the controller and of the quorum, from those of the broker."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from ottla.broker.controller.metadata_log import MetadataLog
from ottla.broker.settings.settings import Settings
from ottla.env import network
from ottla.metadata.decisions.context import ControllerSettings
from ottla.quorum.machine import Quorum
from ottla.quorum.timing import Timing
from ottla.quorum.voters import Address, ReplicaKey
from ottla.storage.identity import NodeIdentity


@dataclass(frozen=True, slots=True)
class QuorumSettings:
    """This node's place among the controllers."""

    listener: str = "CONTROLLER"
    endpoints: Mapping[str, Address] = field(default_factory=dict)  # Where its own listens.
    bootstrap: Sequence[Address] = ()
    is_controller: bool = True
    timing: Timing = field(default_factory=Timing)


def new_quorum(
    settings: QuorumSettings, identity: NodeIdentity, log: MetadataLog, random: Random
) -> Quorum:
    """This node's machine over what the log holds."""
    return Quorum(
        ReplicaKey(identity.node_id, identity.directory_id),
        identity.cluster_id,
        log,
        log.history,
        log.election_state.state,
        below=random.randrange,
        timing=settings.timing,
        listener=settings.listener,
        endpoints=settings.endpoints,
        bootstrap=settings.bootstrap,
        is_controller=settings.is_controller,
    )


def controller_settings(settings: Settings) -> ControllerSettings:
    return ControllerSettings(
        node_id=settings.node_id,
        partitions_default=settings.num_partitions,
        replication_factor_default=settings.default_replication_factor,
        broker_session_timeout_ms=settings.broker_session_timeout_ms,
        is_leadership_balanced=settings.auto_leader_rebalance_enable,
        leader_imbalance_check_interval_ms=settings.leader_imbalance_check_interval_seconds * 1000,
        unclean_election_check_interval_ms=settings.unclean_leader_election_interval_ms,
        is_rebalanced=settings.ottla_rebalance_enable,
        rebalance_interval_ms=settings.ottla_rebalance_interval_ms,
        rebalance_moves_max=settings.ottla_rebalance_moves_max,
        rebalance_lost_after_ms=settings.ottla_rebalance_lost_after_ms,
        broker_configs=settings.static,
    )


def quorum_settings(settings: Settings, bound: Mapping[str, network.Address]) -> QuorumSettings:
    """`bound` says where listeners really are: the system may have chosen a port."""
    return QuorumSettings(
        listener=settings.controller_listener_names[0],
        endpoints={
            endpoint.name: Address(endpoint.host, endpoint.port or bound[endpoint.name].port)
            for endpoint in settings.advertised_listeners
            if endpoint.name in settings.controller_listener_names and endpoint.name in bound
        },
        bootstrap=[
            Address(server.host, server.port)
            for server in settings.controller_quorum_bootstrap_servers
        ],
        is_controller=settings.is_controller,
        timing=Timing(
            election_timeout_ms=settings.controller_quorum_election_timeout_ms,
            fetch_timeout_ms=settings.controller_quorum_fetch_timeout_ms,
            election_backoff_ms_max=settings.controller_quorum_election_backoff_max_ms,
            request_timeout_ms=settings.controller_quorum_request_timeout_ms,
            retry_backoff_ms=settings.controller_quorum_retry_backoff_ms,
            fetch_bytes_max=settings.controller_quorum_fetch_max_bytes,
            snapshot_bytes_max=settings.controller_quorum_fetch_snapshot_max_bytes,
        ),
    )
