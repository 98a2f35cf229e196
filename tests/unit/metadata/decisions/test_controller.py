"""The controller as a state machine: for any commands, its records are consistent."""

# ruff: noqa: ANN401  Requests are of whatever class their API has.

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ottla.metadata.image.batches import encoded
from ottla.metadata.image.image import ClusterImage
from ottla.metadata.image.snapshot import records_of
from ottla.model.errors import ErrorCode
from ottla.model.types import NodeId
from ottla.protocol import metadata_records as records
from ottla.protocol.messages import (
    allocate_producer_ids,
    create_partitions,
    create_topics,
    delete_topics,
    incremental_alter_configs,
    produce,
    unregister_broker,
)
from tests.unit.metadata.controller_driver import CLUSTER, ControllerDriver, replayed, state_of

NAMES = st.sampled_from(["a", "b", "c.d", "c_d", "e"])
NODES = st.integers(1, 4)


def test_a_request_that_no_controller_decides_is_refused() -> None:
    refusal, written = ControllerDriver().decide(produce.Request())
    assert refusal.code == ErrorCode.UNSUPPORTED_VERSION
    assert written == []


def test_the_next_offset_follows_what_was_applied_or_passed() -> None:
    deciding = ControllerDriver()
    before = deciding.controller.next_offset
    deciding.create("t", 2)
    assert deciding.controller.next_offset == before + 3
    deciding.controller.passed(99)
    assert deciding.controller.next_offset == 100


def test_topics_that_come_and_go_leave_nothing_behind() -> None:
    deciding = ControllerDriver()
    for _ in range(20):
        deciding.create("t")
        deciding.ask(delete_topics.Request([delete_topics.DeleteTopicState("t")]))
    deciding.create("last")
    assert len(deciding.image.take_delta().created) == 1
    assert len(deciding.image.topics_by_id) == 1


def naive_fold(written: list[Any]) -> dict[str, dict[int, tuple[int, int]]]:
    """Topics, partitions, leaders and epochs, folded by a simple model."""
    names: dict[bytes, str] = {}
    topics: dict[str, dict[int, tuple[int, int]]] = {}
    for record in written:
        match record:
            case records.TopicRecord():
                names[record.topic_id] = record.name
                topics[record.name] = {}
            case records.RemoveTopicRecord():
                del topics[names.pop(record.topic_id)]
            case records.PartitionRecord():
                partitions = topics[names[record.topic_id]]
                assert record.partition_id == len(partitions), "partitions are numbered in order"
                partitions[record.partition_id] = (record.leader, record.leader_epoch)
            case records.PartitionChangeRecord() if record.leader != -2:
                partitions = topics[names[record.topic_id]]
                _, epoch = partitions[record.partition_id]
                partitions[record.partition_id] = (record.leader, epoch + 1)
    return topics


class AnyCommands(RuleBasedStateMachine):
    @initialize(brokers=st.integers(1, 3), elr=st.booleans())
    def begin(self, brokers: int, elr: bool) -> None:
        features = {"eligible.leader.replicas.version": 1} if elr else None
        self.deciding = ControllerDriver(brokers, features=features)
        self.now = 1_000

    def ask(self, request: Any) -> Any:
        reply, written = self.deciding.decide(request, self.now)
        for record, value in zip(written, encoded(written, 30), strict=True):
            assert records.decode_record(value) == record, "what is written can be read again"
        self.deciding.write(*written)
        return reply

    @rule(name=NAMES, partitions=st.integers(-1, 4), factor=st.integers(-1, 3))
    def create(self, name: str, partitions: int, factor: int) -> None:
        self.ask(create_topics.Request([create_topics.CreatableTopic(name, partitions, factor)]))

    @rule(names=st.lists(NAMES, max_size=3))
    def delete(self, names: list[str]) -> None:
        topics = [delete_topics.DeleteTopicState(name) for name in names]
        self.ask(delete_topics.Request(topics))

    @rule(name=NAMES, count=st.integers(0, 6))
    def grow(self, name: str, count: int) -> None:
        topic = create_partitions.CreatePartitionsTopic(name, count, None)
        self.ask(create_partitions.Request([topic]))

    @rule(name=NAMES, value=st.sampled_from(["1", "2", "x", None]))
    def alter(self, name: str, value: str | None) -> None:
        config = incremental_alter_configs.AlterableConfig(
            "min.insync.replicas", 1 if value is None else 0, value
        )
        resource = incremental_alter_configs.AlterConfigsResource(2, name, [config])
        self.ask(incremental_alter_configs.Request([resource]))

    @rule(node=NODES, clean=st.booleans())
    def register(self, node: int, clean: bool) -> None:
        previous = self.deciding.epochs.get(node, -1) if clean else -1
        request = self.deciding.registration(node, previous_broker_epoch=previous)
        reply = self.ask(request)
        if hasattr(reply, "broker_epoch"):
            self.deciding.epochs[node] = reply.broker_epoch

    def is_known(self) -> bool:
        return bool(self.deciding.image.brokers)

    @precondition(is_known)
    @rule(data=st.data(), stop=st.booleans(), fence=st.booleans())
    def heartbeat(self, data: st.DataObject, stop: bool, fence: bool) -> None:
        node = data.draw(st.sampled_from(sorted(self.deciding.image.brokers)))
        self.deciding.heartbeat(node, self.now, want_shut_down=stop, want_fence=fence)

    @rule(node=NODES)
    def unregister(self, node: int) -> None:
        self.ask(unregister_broker.Request(node))

    @rule(node=NODES)
    def take_producer_ids(self, node: int) -> None:
        epoch = self.deciding.epochs.get(node, -1)
        self.ask(allocate_producer_ids.Request(node, epoch))

    @rule(passed=st.integers(1, 6_000))
    def wait(self, passed: int) -> None:
        self.now += passed
        self.deciding.tick(self.now)

    @invariant()
    def the_image_is_the_fold_of_what_was_written(self) -> None:
        image = self.deciding.image
        found = {
            name: {index: (p.leader, p.leader_epoch) for index, p in topic.partitions.items()}
            for name, topic in image.topics_by_name.items()
        }
        assert found == naive_fold(self.deciding.written)
        assert state_of(replayed(self.deciding.written)) == state_of(image)

    @invariant()
    def a_snapshot_of_it_replays_to_the_same(self) -> None:
        image: ClusterImage = self.deciding.image
        assert image.cluster_id == CLUSTER
        assert state_of(replayed(list(records_of(image)))) == state_of(image)

    @invariant()
    def leaders_are_alive_and_in_sync(self) -> None:
        brokers = self.deciding.image.brokers
        for topic in self.deciding.image.topics_by_id.values():
            for partition in topic.partitions.values():
                if partition.leader >= 0:
                    assert partition.leader in partition.isr
                    assert not brokers[NodeId(partition.leader)].is_fenced
                assert set(partition.isr) <= set(partition.replicas)
                assert not set(partition.isr) & set(partition.elr)


TestAnyCommands = AnyCommands.TestCase
TestAnyCommands.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
