from collections import Counter

from ottla.metadata.decisions.context import ControllerSettings, is_drained
from ottla.metadata.decisions.rebalance import Absences, next_moves
from ottla.metadata.image.cluster import BROKER_RESOURCE, Partition
from ottla.model.types import Monotonic, NodeId
from ottla.protocol.messages import (
    alter_partition,
    assign_replicas_to_dirs,
    incremental_alter_configs,
)
from tests.unit.metadata.controller_driver import ControllerDriver

NOW = 1_000


class RebalanceDriver:
    """A controller without a broker role, and brokers in the given racks."""

    def __init__(self, racks: str, **settings: int | bool) -> None:
        own = ControllerSettings(NodeId(99), **settings)  # type: ignore[arg-type]
        self.deciding = ControllerDriver(brokers=0, settings=own)
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
        changes = next_moves(self.deciding.context, set(map(NodeId, lost)), moves_max)
        self.deciding.write(*changes)
        return len(changes)

    def replicated(self) -> None:
        """All moves complete."""
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
        """The partitions of `t` with a replica on `node`."""
        partitions = self.deciding.image.topics_by_name["t"].partitions
        return sorted(index for index, part in partitions.items() if node in part.replicas)

    def racks_of(self, partition: Partition) -> set[str | None]:
        return {self.deciding.image.brokers[node].rack for node in partition.replicas}


def test_a_new_broker_gets_its_share_a_few_at_a_time() -> None:
    driver = RebalanceDriver("abc")
    driver.deciding.create("t", 20, 2)
    assert driver.moves() == 0
    driver.join(4, "d")
    assert driver.moves(3) == 3
    assert driver.moves(3) == 0  # They are still on the move.
    driver.replicated()
    driver.settle()
    assert max(driver.load.values()) - min(driver.load.values()) <= 3
    assert driver.load[4] >= 8


def test_a_drained_broker_is_emptied_and_stays_empty() -> None:
    driver = RebalanceDriver("abcd")
    driver.deciding.create("t", 20, 2)
    driver.drain(2)
    assert is_drained(driver.deciding.image, NodeId(2))
    driver.settle()
    assert driver.load[2] == 0
    assert {p.leader for p in driver.partitions} <= {1, 3, 4}
    assert driver.moves() == 0
    driver.deciding.create("new", 6, 2)
    assert driver.load[2] == 0
    driver.drain(2, "false")
    driver.settle()
    assert driver.load[2] >= 8


def test_rebalance_keeps_racks_apart() -> None:
    driver = RebalanceDriver("aabb")
    driver.deciding.create("t", 20, 2)
    assert all(len(driver.racks_of(p)) == 2 for p in driver.partitions)
    driver.join(5, "a")
    driver.settle()
    assert all(len(driver.racks_of(p)) == 2 for p in driver.partitions)
    assert driver.load[5] > 0
    driver.drain(1)
    driver.settle()
    assert all(len(driver.racks_of(p)) == 2 for p in driver.partitions)
    assert driver.load[1] == 0


def test_replicas_of_a_lost_broker_are_recreated_on_others() -> None:
    driver = RebalanceDriver("abcd")
    driver.deciding.create("t", 10, 3)
    driver.deciding.heartbeat(4, want_fence=True)
    driver.settle(lost=(4,))
    assert driver.load[4] == 0
    assert {len(p.replicas) for p in driver.partitions} == {3}


def test_a_broker_away_for_a_short_time_keeps_its_replicas() -> None:
    driver = RebalanceDriver("abcd")
    driver.deciding.create("t", 10, 3)
    before = driver.load
    driver.deciding.heartbeat(4, want_fence=True)
    assert driver.moves() == 0
    assert driver.load == before


def test_a_replica_without_another_place_stays() -> None:
    driver = RebalanceDriver("abc")
    driver.deciding.create("t", 4, 3)
    driver.drain(3)
    assert driver.moves() == 0


def test_a_broker_counts_as_lost_after_the_timeout() -> None:
    driver = RebalanceDriver("abc")
    absences = Absences()
    image = driver.deciding.image
    driver.deciding.heartbeat(2, want_fence=True)
    absences.look(image, Monotonic(100))
    assert absences.longer_than(50, Monotonic(149)) == set()
    assert absences.longer_than(50, Monotonic(150)) == {2}
    driver.deciding.heartbeat(2)
    absences.look(image, Monotonic(200))
    assert absences.longer_than(50, Monotonic(300)) == set()


def test_rebalance_runs_periodically() -> None:
    driver = RebalanceDriver("ab")
    driver.deciding.create("t", 6, 1)
    driver.join(3, "c")
    driver.deciding.controller.activated(Monotonic(NOW))
    assert driver.deciding.tick(NOW + 9_000 - 1) == []
    for node in (1, 2, 3):
        driver.deciding.heartbeat(node, NOW + 9_000)
    assert len(driver.deciding.tick(NOW + 10_000)) in (2, 3)


def test_rebalance_can_be_disabled() -> None:
    driver = RebalanceDriver("ab", is_rebalanced=False)
    driver.deciding.create("t", 6, 1)
    driver.join(3, "c")
    driver.deciding.controller.activated(Monotonic(NOW))
    for node in (1, 2, 3):
        driver.deciding.heartbeat(node, NOW + 9_000)
    assert driver.deciding.tick(NOW + 10_000) == []


GOOD, BAD = b"g" * 16, b"b" * 16


def test_a_replica_without_a_disk_moves_to_another_broker() -> None:
    driver = RebalanceDriver("abc")
    driver.deciding.register(4, rack="d", log_dirs=[GOOD, BAD])
    driver.deciding.heartbeat(4)
    driver.deciding.create("t", 8, 3)
    driver.deciding.create("alone", 8, 1)
    lying = driver.on(4)
    good, bad = lying[1::2], lying[::2]
    driver.place(4, GOOD, good)
    driver.place(4, BAD, bad)
    absences = Absences()
    driver.deciding.heartbeat(4, offline_log_dirs=[BAD])
    image = driver.deciding.image
    absences.look(image, Monotonic(100))
    assert absences.homeless_longer_than(50, Monotonic(149)) == set()
    homeless = absences.homeless_longer_than(50, Monotonic(150))
    assert homeless == {(image.topics_by_name["t"].id, index, 4) for index in bad}
    changes = next_moves(driver.deciding.context, (), 100, homeless)
    driver.deciding.write(*changes)
    driver.replicated()
    assert driver.on(4) == good
    absences.look(image, Monotonic(200))
    assert absences.homeless_longer_than(0, Monotonic(200)) == set()
