"""Partition states of the metadata log as any node has ever known them, committed or only decided.

Nodes forget: a killed node takes with it metadata that no other node has read yet, and a decision
that is appended, but not committed, may still become its partition's state. Both are kept here.
"""

from collections.abc import Callable

from ottla.broker.node import inspection
from ottla.metadata.image.cluster import NO_LEADER, RECOVERING, Partition
from ottla.metadata.image.image import ClusterImage
from ottla.model.types import NodeId, Offset, TopicPartition, Uuid
from ottla.simulation.world.nodes import Nodes

Key = tuple[Uuid, int]
States = dict[Key, Partition]


class KnownMetadata:
    def __init__(self, nodes: Nodes) -> None:
        self.offset: Offset = -1
        self.committed: States = {}
        # Called with each partition whose leader of this epoch was elected uncleanly.
        self.on_unclean: Callable[[TopicPartition, Key, int], None] = _nothing
        self._nodes = nodes
        self._unclean: set[tuple[Key, int]] = set()
        # Decisions that are not committed, by the offset up to which a controller has decided.
        self._decided: dict[Offset, set[Partition]] = {}
        self._proposed: set[tuple[Key, int, frozenset[NodeId]]] = set()

    def look(self) -> None:
        """After every turn: the newest metadata may be gone with its node soon.

        A node that does not serve yet may be the active controller, and the only one to know.
        """
        for machine in self._nodes.all:
            view = inspection.quorum(machine.latest)
            if view is None:
                continue
            if (image := view.image).offset > self.offset:
                self.offset = image.offset
                self.committed = _states(image)
                self._note_unclean(image)
                self._decided = {at: one for at, one in self._decided.items() if at > self.offset}
            if (decided := view.decided_image) is not None and decided.offset > self.offset:
                self._note_decided(decided)

    def keepers(self) -> list[set[NodeId]]:
        """For each state that a partition has or may get, its in-sync and eligible replicas.

        A node may lose power when its proposal of another ISR is on its way: that stays proposed
        until the partition has another epoch.
        """
        self._note_proposed()
        decided = [state for states in self._decided.values() for state in states]
        proposed = [
            set(isr)
            for (key, epoch, isr) in self._proposed
            if key in self.committed and self.committed[key].partition_epoch <= epoch
        ]
        states = (*self.committed.values(), *decided)
        return [{*state.isr, *state.elr} for state in states] + proposed

    def _note_proposed(self) -> None:
        for machine in self._nodes.all:
            if machine.latest is None:
                continue
            for view in inspection.partitions(machine.latest):
                key = (view.topic_id, view.name.partition)
                isr = view.proposed_isr
                if isr is not None and key in self.committed:
                    self._proposed.add((key, self.committed[key].partition_epoch, isr))

    def _note_unclean(self, image: ClusterImage) -> None:
        """A state stays RECOVERING until its leader, which read it here, has changed the ISR."""
        for topic in image.topics_by_name.values():
            for index, state in topic.partitions.items():
                if state.leader_recovery_state != RECOVERING or state.leader == NO_LEADER:
                    continue
                key, epoch = (topic.id, index), state.leader_epoch
                if (key, epoch) not in self._unclean:
                    self._unclean.add((key, epoch))
                    self.on_unclean(TopicPartition(topic.name, index), key, epoch)

    def _note_decided(self, image: ClusterImage) -> None:
        """Two controllers may decide differently at the same offset: both decisions count."""
        states = self._decided.setdefault(image.offset, set())
        for key, state in _states(image).items():
            if state != self.committed.get(key):
                states.add(state)


def _states(image: ClusterImage) -> States:
    return {
        (topic.id, index): state
        for topic in image.topics_by_name.values()
        for index, state in topic.partitions.items()
    }


def _nothing(*_: object) -> None:
    pass
