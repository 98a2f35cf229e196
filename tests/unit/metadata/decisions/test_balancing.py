from collections import Counter

from ottla.metadata.decisions.balancing import Absences, next_moves
from ottla.metadata.decisions.context import ControllerSettings, is_drained
from ottla.metadata.image.cluster import BROKER_RESOURCE, Partition
from ottla.model.types import Monotonic, NodeId
from ottla.protocol.messages import (
    alter_partition,
    assign_replicas_to_dirs,
    incremental_alter_configs,
)
from tests.unit.metadata.making import Deciding

NOW = 1_000


class Balancing:
    """A controller of its own node, and brokers in the racks that are named."""

    def __init__(self, racks: str, **settings: int | bool) -> None:
        own = ControllerSettings(NodeId(99), **settings)  # type: ignore[arg-type]
        self.deciding = Deciding(brokers=0, settings=own)
        for node, rack in enumerate(racks, 1):
            self.join(node, rack)

    def join(self, node: int, rack: str) -> None:
        self.deciding.register(node, rack=rack)
        self.deciding.heartbeat(node)

    def drain(self, node: int, value: str = "true") -> None:
        change = incremental_alter_configs.AlterableConfig("ottla.drained", 0, value)
        resource = incremental_alter_configs.AlterConfigsResource(
            BROKER_RESOURCE, str(node), [change]
        )
        answer = self.deciding.ask(incremental_alter_configs.Request([resource]))
        assert answer.responses[0].error_code == 0, answer

    def place(self, node: int, directory: bytes, indexes: list[int]) -> None:
        topic = assign_replicas_to_dirs.RequestTopicData(
            self.deciding.image.topics_by_name["t"].id,
            [assign_replicas_to_dirs.RequestPartitionData(index) for index in indexes],
        )
        placed = [assign_replicas_to_dirs.RequestDirectoryData(directory, [topic])]
        epoch = self.deciding.epochs[node]
        self.deciding.ask(assign_replicas_to_dirs.Request(node, epoch, placed))

    def moves(self, moves_max: int = 100, lost: tuple[int, ...] = ()) -> int:
        changes = next_moves(self.deciding.around, set(map(NodeId, lost)), moves_max)
        self.deciding.write(*changes)
        return len(changes)

    def replicated(self) -> None:
        """All that is on the move has arrived."""
        for topic in list(self.deciding.image.topics_by_id.values()):
            for index, part in topic.partitions.items():
                if part.adding or part.removing:
                    epochs = self.deciding.epochs
                    isr = [
                        alter_partition.BrokerState(n, epochs[n])
                        for n in part.replicas
                        if (broker := self.deciding.image.brokers[n]).is_active
                        and broker.has_disk_of(part)
                    ]
                    asked = alter_partition.RequestPartitionData(
                        index, part.leader_epoch, [], isr, 0, part.partition_epoch
                    )
                    named = [alter_partition.RequestTopicData(topic.id, [asked])]
                    self.deciding.ask(
                        alter_partition.Request(part.leader, epochs[part.leader], named)
                    )

    def settle(self, moves_max: int = 3, lost: tuple[int, ...] = ()) -> int:
        rounds = 0
        while self.moves(moves_max, lost):
            self.replicated()
            rounds += 1
            assert rounds < 100, "it never ends"
        return rounds

    @property
    def partitions(self) -> list[Partition]:
        topics = self.deciding.image.topics_by_name.values()
        return [partition for topic in topics for partition in topic.partitions.values()]

    @property
    def load(self) -> Counter[int]:
        return Counter(node for p in self.partitions for node in p.replicas)

    def on(self, node: int) -> list[int]:
        """The partitions of `t` that have a replica there."""
        partitions = self.deciding.image.topics_by_name["t"].partitions
        return sorted(index for index, part in partitions.items() if node in part.replicas)

    def racks_of(self, partition: Partition) -> set[str | None]:
        return {self.deciding.image.brokers[node].rack for node in partition.replicas}


def test_a_new_broker_gets_its_share_a_few_at_a_time() -> None:
    balancing = Balancing("abc")
    balancing.deciding.create("t", 20, 2)
    assert balancing.moves() == 0
    balancing.join(4, "d")
    assert balancing.moves(3) == 3
    assert balancing.moves(3) == 0  # They are still on the move.
    balancing.replicated()
    balancing.settle()
    assert max(balancing.load.values()) - min(balancing.load.values()) <= 3
    assert balancing.load[4] >= 8


def test_a_drained_broker_is_emptied_and_stays_empty() -> None:
    balancing = Balancing("abcd")
    balancing.deciding.create("t", 20, 2)
    balancing.drain(2)
    assert is_drained(balancing.deciding.image, NodeId(2))
    balancing.settle()
    assert balancing.load[2] == 0
    assert {p.leader for p in balancing.partitions} <= {1, 3, 4}
    assert balancing.moves() == 0
    balancing.deciding.create("new", 6, 2)
    assert balancing.load[2] == 0
    balancing.drain(2, "false")
    balancing.settle()
    assert balancing.load[2] >= 8


def test_racks_stay_apart() -> None:
    balancing = Balancing("aabb")
    balancing.deciding.create("t", 20, 2)
    assert all(len(balancing.racks_of(p)) == 2 for p in balancing.partitions)
    balancing.join(5, "a")
    balancing.settle()
    assert all(len(balancing.racks_of(p)) == 2 for p in balancing.partitions)
    assert balancing.load[5] > 0
    balancing.drain(1)
    balancing.settle()
    assert all(len(balancing.racks_of(p)) == 2 for p in balancing.partitions)
    assert balancing.load[1] == 0


def test_what_a_lost_broker_held_is_made_anew_elsewhere() -> None:
    balancing = Balancing("abcd")
    balancing.deciding.create("t", 10, 3)
    balancing.deciding.heartbeat(4, want_fence=True)
    balancing.settle(lost=(4,))
    assert balancing.load[4] == 0
    assert {len(p.replicas) for p in balancing.partitions} == {3}


def test_a_broker_that_is_merely_away_keeps_its_replicas() -> None:
    balancing = Balancing("abcd")
    balancing.deciding.create("t", 10, 3)
    before = balancing.load
    balancing.deciding.heartbeat(4, want_fence=True)
    assert balancing.moves() == 0
    assert balancing.load == before


def test_where_there_is_no_other_place_a_replica_stays() -> None:
    balancing = Balancing("abc")
    balancing.deciding.create("t", 4, 3)
    balancing.drain(3)
    assert balancing.moves() == 0


def test_a_broker_is_lost_when_it_was_away_for_long() -> None:
    balancing = Balancing("abc")
    absences = Absences()
    image = balancing.deciding.image
    balancing.deciding.heartbeat(2, want_fence=True)
    absences.look(image, Monotonic(100))
    assert absences.longer_than(50, Monotonic(149)) == set()
    assert absences.longer_than(50, Monotonic(150)) == {2}
    balancing.deciding.heartbeat(2)
    absences.look(image, Monotonic(200))
    assert absences.longer_than(50, Monotonic(300)) == set()


def test_the_controller_looks_from_time_to_time() -> None:
    balancing = Balancing("ab")
    balancing.deciding.create("t", 6, 1)
    balancing.join(3, "c")
    balancing.deciding.controller.activated(Monotonic(NOW))
    assert balancing.deciding.tick(NOW + 9_000 - 1) == []
    for node in (1, 2, 3):
        balancing.deciding.heartbeat(node, NOW + 9_000)
    assert len(balancing.deciding.tick(NOW + 10_000)) in (2, 3)


def test_it_does_not_if_the_operator_says_so() -> None:
    balancing = Balancing("ab", is_rebalanced=False)
    balancing.deciding.create("t", 6, 1)
    balancing.join(3, "c")
    balancing.deciding.controller.activated(Monotonic(NOW))
    for node in (1, 2, 3):
        balancing.deciding.heartbeat(node, NOW + 9_000)
    assert balancing.deciding.tick(NOW + 10_000) == []


GOOD, BAD = b"g" * 16, b"b" * 16


def test_a_replica_whose_broker_has_no_place_for_it_goes_to_another() -> None:
    balancing = Balancing("abc")
    balancing.deciding.register(4, rack="d", log_dirs=[GOOD, BAD])
    balancing.deciding.heartbeat(4)
    balancing.deciding.create("t", 8, 3)
    balancing.deciding.create("alone", 8, 1)
    lying = balancing.on(4)
    good, bad = lying[1::2], lying[::2]
    balancing.place(4, GOOD, good)
    balancing.place(4, BAD, bad)
    absences = Absences()
    balancing.deciding.heartbeat(4, offline_log_dirs=[BAD])
    image = balancing.deciding.image
    absences.look(image, Monotonic(100))
    assert absences.homeless_longer_than(50, Monotonic(149)) == set()
    homeless = absences.homeless_longer_than(50, Monotonic(150))
    assert homeless == {(image.topics_by_name["t"].id, index, 4) for index in bad}
    changes = next_moves(balancing.deciding.around, (), 100, homeless)
    balancing.deciding.write(*changes)
    balancing.replicated()
    assert balancing.on(4) == good
    absences.look(image, Monotonic(200))
    assert absences.homeless_longer_than(0, Monotonic(200)) == set()
