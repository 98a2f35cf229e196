"""Replication between this broker and the others: whom we follow, who follows us, what we propose.

Partitions say what they are (`follow`, `unfollow`); here are the tasks and sessions that all of
them share, one for each other broker.
"""

import asyncio
from collections.abc import Callable, Collection
from functools import partial
from typing import Final

from ottla.broker.context import BrokerContext
from ottla.broker.metrics.metrics import Metrics
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.partitions.replicated_partition import ReplicatedPartition
from ottla.broker.replicas.fetcher import Contacts, ReplicaFetcher
from ottla.broker.replicas.isr_proposals import IsrProposals
from ottla.broker.replicas.sessions import ReplicaSessions
from ottla.broker.settings.settings import Settings
from ottla.broker.settings.topic_config import TopicConfig, is_throttled
from ottla.metadata.image.delta import ImageDelta
from ottla.model.types import NodeId, Uuid
from ottla.replication.throttle import Throttle

# As Kafka calls it; the package before it does not matter.
RACK_AWARE_SELECTOR: Final = "RackAwareReplicaSelector"


class Replicas:
    def __init__(
        self,
        context: BrokerContext,
        partitions: Partitions,
        metrics: Metrics,
        contacts: Contacts,
        heard_leader: Callable[[Partition], None],
    ) -> None:
        self.sessions = ReplicaSessions(context, partitions, metrics)
        self.proposals = IsrProposals(context)
        self.propose = self.proposals.propose
        self.answer_ready = self.sessions.answer_ready
        self.leader_throttle = _throttle(context.settings)
        self.follower_throttle = _throttle(context.settings)
        self._context = context
        self._partitions = partitions
        self._fetcher = partial(ReplicaFetcher, context, partitions, contacts, heard_leader)
        self._fetchers: dict[NodeId, ReplicaFetcher] = {}
        self._leaders: dict[ReplicatedPartition, NodeId] = {}  # Of those that we follow.
        self._is_fenced = False  # As far as we have heard.
        self._timer: asyncio.TimerHandle | None = None

    def settings_changed(self) -> None:
        settings = self._context.settings
        self.leader_throttle.rate = settings.leader_replication_throttled_rate
        self.follower_throttle.rate = settings.follower_replication_throttled_rate
        for partition in self._replicated():
            if partition.follower_throttle is not None:
                self._try_again(partition)

    def start(self) -> None:
        """From here on we are registered, and may fetch and propose."""
        self._brokers_changed(list(self._fetchers))
        self._tick_later()

    def registered_again(self) -> None:
        """A fetch names the epoch of its broker: none was sent while we had none."""
        for fetcher in self._fetchers.values():
            fetcher.try_now()

    def _tick_later(self) -> None:
        interval_ms = max(self._context.settings.replica_lag_time_max_ms // 2, 1)
        self._timer = self._context.call_later(interval_ms, self._tick)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def follow(self, partition: ReplicatedPartition, leader: NodeId, leader_epoch: int) -> None:
        follower = partition.follower
        if follower is not None and partition.leader_epoch == leader_epoch:
            return
        self.unfollow(partition)
        follower = partition.follow(leader_epoch)
        fetcher = self._fetchers.get(leader)
        if fetcher is None:
            fetcher = self._fetchers[leader] = self._fetcher(leader)
            self._context.spawn(fetcher.run())
        self._leaders[partition] = leader
        fetcher.follow(partition, follower)

    def unfollow(self, partition: ReplicatedPartition) -> None:
        leader = self._leaders.pop(partition, None)
        if leader is not None:
            self._fetchers[leader].unfollow(partition)

    def is_eligible(self, topic_id: Uuid, index: int, node: NodeId, broker_epoch: int) -> bool:
        """Whether that incarnation of a broker may be in sync, as far as we have heard."""
        image = self._context.image
        broker, topic = image.brokers.get(node), image.topics_by_id.get(topic_id)
        if broker is None or not broker.is_active or broker_epoch not in (-1, broker.epoch):
            return False
        return topic is None or broker.has_disk_of(topic.partitions[index])

    def is_alive(self, node: NodeId) -> bool:
        broker = self._context.image.brokers.get(node)
        return broker is not None and not broker.is_fenced

    def nearest(self, rack: str, nodes: set[NodeId]) -> NodeId | None:
        """One of `nodes` in a consumer's rack; None if we are there, or fetching there is off."""
        selector = self._context.settings.replica_selector_class or ""
        if not selector.endswith(RACK_AWARE_SELECTOR):
            return None
        brokers = self._context.image.brokers
        here = brokers.get(self._context.node_id)
        if here is not None and here.rack == rack:
            return None
        near = (n for n in sorted(nodes) if n in brokers and brokers[n].rack == rack)
        return next((n for n in near if brokers[n].is_active), None)

    def image_changed(self, delta: ImageDelta) -> None:
        self._brokers_changed(delta.brokers)

    def _brokers_changed(self, nodes: Collection[NodeId]) -> None:
        """Those that we could not reach may be back, and those that could not join, too."""
        if self._context.node_id in nodes:
            was_fenced, self._is_fenced = self._is_fenced, not self.is_alive(self._context.node_id)
            if was_fenced and not self._is_fenced:
                for each in self._fetchers.values():
                    each.reconnect()
        for node in nodes:
            fetcher = self._fetchers.get(node)
            if fetcher is not None:
                fetcher.try_now()
        if nodes:
            for partition in self._replicated():
                partition.reconsider()

    def _tick(self) -> None:
        self._tick_later()
        for partition in self._replicated():
            partition.tick()

    def throttle(self, partition: ReplicatedPartition, config: TopicConfig) -> None:
        """As the topic says of our replica of it."""
        index, me = partition.name.partition, self._context.node_id
        of_leader = config.leader_replication_throttled_replicas
        of_follower = config.follower_replication_throttled_replicas
        before = partition.follower_throttle
        partition.set_throttles(
            leader=self.leader_throttle if is_throttled(of_leader, index, me) else None,
            follower=self.follower_throttle if is_throttled(of_follower, index, me) else None,
        )
        if before is not None:
            self._try_again(partition)

    def _try_again(self, partition: ReplicatedPartition) -> None:
        """What held it up may do so no longer."""
        leader = self._leaders.get(partition)
        if leader is not None and partition.follower is not None:
            partition.follower.retry_at = None
            self._fetchers[leader].try_now()

    def _replicated(self) -> list[ReplicatedPartition]:
        hosted = self._partitions.all()
        return [partition for partition in hosted if isinstance(partition, ReplicatedPartition)]


def _throttle(settings: Settings) -> Throttle:
    sample_ms = settings.replication_quota_window_size_seconds * 1000
    return Throttle(samples_max=settings.replication_quota_window_num, sample_ms=sample_ms)
