"""Automatic replica moves: off drained or lost brokers, onto new ones.

A replica whose disk failed is moved too, if its broker has not found another place for it for long:
its other disks may be full.

A few partitions at a time, each an ordinary reassignment: it is listed, can be cancelled, and ends
when the new replica is in sync. Brokers to be emptied come first; then, while some broker has
clearly more replicas than another, the difference is evened out. Rack separation is preserved.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final

from ottla.metadata.decisions.context import DecisionContext, is_drained
from ottla.metadata.decisions.reassignments import is_moving, move
from ottla.metadata.image.cluster import Partition, Topic
from ottla.metadata.image.image import ClusterImage
from ottla.model.types import Millis, Monotonic, NodeId, Uuid
from ottla.protocol.metadata_records import PartitionChangeRecord

# Smallest difference in replica counts that causes a move: random placement is never quite even.
DIFFERENCE_MAX: Final = 3
DIFFERENCE_SHARE_MAX: Final = 0.1


Replica = tuple[Uuid, int, NodeId]


class Absences:
    """Time since each broker has been away, and each replica without a disk.

    Soft state: starts at zero with a new controller.
    """

    def __init__(self) -> None:
        self._since: dict[NodeId, Monotonic] = {}
        self._homeless_since: dict[Replica, Monotonic] = {}

    def look(self, image: ClusterImage, now: Monotonic) -> None:
        for broker in image.brokers.values():
            if broker.is_fenced:
                self._since.setdefault(broker.id, now)
            else:
                self._since.pop(broker.id, None)
        known = self._homeless_since
        self._homeless_since = {each: known.get(each, now) for each in _without_disk(image)}

    def longer_than(self, absent_ms: Millis, now: Monotonic) -> set[NodeId]:
        return {node for node, since in self._since.items() if now - since >= absent_ms}

    def homeless_longer_than(self, absent_ms: Millis, now: Monotonic) -> set[Replica]:
        return {one for one, since in self._homeless_since.items() if now - since >= absent_ms}


def next_moves(
    context: DecisionContext,
    lost: Collection[NodeId],
    moves_max: int,
    homeless: Collection[Replica] = (),
) -> list[PartitionChangeRecord]:
    """Moves to start now, so that at most `moves_max` partitions are being moved."""
    image = context.image
    left = moves_max - sum(is_moving(partition) for _, _, partition in _all(image))
    usable = sorted(
        broker.id
        for broker in image.brokers.values()
        if broker.is_active and broker.id not in lost and not is_drained(image, broker.id)
    )
    without_place = {node for _, _, node in homeless}
    usable = [node for node in usable if node not in without_place]
    if left <= 0 or not usable:
        return []
    balance = _Balance(context, usable)
    balance.empty(lost, homeless, left)
    if not balance.moves and not any(is_moving(partition) for _, _, partition in _all(image)):
        balance.even_out(left)
    return balance.moves


class _Balance:
    def __init__(self, context: DecisionContext, usable: list[NodeId]) -> None:
        self.moves: list[PartitionChangeRecord] = []
        self._context = context
        self._image = context.image
        self._usable = usable
        self._load: Counter[NodeId] = Counter(dict.fromkeys(usable, 0))
        for _, _, partition in _all(self._image):
            self._load.update(n for n in partition.replicas if n not in partition.removing)

    def empty(
        self, lost: Collection[NodeId], homeless: Collection[Replica], moves_max: int
    ) -> None:
        """Move replicas off unusable brokers, where another place exists.

        A broker that is only restarting keeps its replicas.
        """
        for topic, index, partition in _all(self._image):
            if len(self.moves) >= moves_max:
                return
            leaving = [
                node
                for node in partition.replicas
                if self._is_unwanted(node, lost) or (topic.id, index, node) in homeless
            ]
            if leaving and not is_moving(partition):
                replicas = partition.replicas
                for node in leaving:
                    target = self._target(replicas, node)
                    if target is not None:
                        replicas = _replaced(replicas, node, target)
                self._move(topic, index, replicas)

    def _is_unwanted(self, node: NodeId, lost: Collection[NodeId]) -> bool:
        return node in lost or node not in self._image.brokers or is_drained(self._image, node)

    def even_out(self, moves_max: int) -> None:
        """Move replicas from the fullest to the emptiest broker until the counts are even."""
        loads = [self._load[node] for node in self._usable]
        allowed = max(DIFFERENCE_MAX, DIFFERENCE_SHARE_MAX * sum(loads) / len(loads))
        if max(loads) - min(loads) <= allowed:
            return
        moved: set[tuple[bytes, int]] = set()
        while len(self.moves) < moves_max:
            most = max(self._usable, key=lambda node: self._load[node])
            least = min(self._usable, key=lambda node: self._load[node])
            if self._load[most] - self._load[least] <= 1:
                return
            found = self._movable(most, least, moved)
            if found is None:
                return
            topic, index, replicas = found
            moved.add((topic.id, index))
            self._move(topic, index, replicas)

    def _movable(
        self, most: NodeId, least: NodeId, moved: set[tuple[bytes, int]]
    ) -> tuple[Topic, int, tuple[NodeId, ...]] | None:
        for topic, index, partition in _all(self._image):
            replicas = partition.replicas
            if (topic.id, index) in moved or most not in replicas or least in replicas:
                continue
            others = [node for node in replicas if node != most]
            is_apart = self._rack(most) not in map(self._rack, others)
            if is_apart and self._rack(least) in map(self._rack, others):
                continue  # The partition would span fewer racks.
            return topic, index, _replaced(replicas, most, least)
        return None

    def _target(self, replicas: tuple[NodeId, ...], leaving: NodeId) -> NodeId | None:
        others = [node for node in replicas if node != leaving]
        racks = set(map(self._rack, others))
        candidates = [node for node in self._usable if node not in replicas]
        return min(
            candidates,
            key=lambda node: (self._rack(node) in racks, self._load[node], node),
            default=None,
        )

    def _rack(self, node: NodeId) -> str | None:
        broker = self._image.brokers.get(node)
        return broker.rack if broker is not None else None

    def _move(self, topic: Topic, index: int, replicas: tuple[NodeId, ...]) -> None:
        before = topic.partitions[index].replicas
        if replicas == before:
            return
        change = move(self._context, topic, index, replicas)
        if change is not None:
            self.moves.append(change)
            self._load.subtract(before)
            self._load.update(replicas)


def _replaced(replicas: tuple[NodeId, ...], leaving: NodeId, coming: NodeId) -> tuple[NodeId, ...]:
    """The new replica takes the position of the old one in the preference order."""
    return tuple(coming if node == leaving else node for node in replicas)


def _without_disk(image: ClusterImage) -> Iterator[Replica]:
    """Replicas of live brokers whose disk is lost, where others are in sync."""
    for topic, index, partition in _all(image):
        for node in partition.replicas:
            broker = image.brokers.get(node)
            if broker is None or broker.is_fenced or broker.has_disk_of(partition):
                continue
            if partition.has_others_in_sync(node):
                yield topic.id, index, node


def _all(image: ClusterImage) -> Iterator[tuple[Topic, int, Partition]]:
    for _, topic in sorted(image.topics_by_name.items()):
        for index, partition in sorted(topic.partitions.items()):
            yield topic, index, partition
