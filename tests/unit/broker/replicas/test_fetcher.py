"""What a follower does with its leader's answers."""

from collections.abc import Iterable
from copy import copy

import pytest

from ottla.broker.node.broker import Broker
from ottla.broker.partitions.checkpoint_writer import CheckpointWriter
from ottla.broker.partitions.log_sync import LogSync
from ottla.broker.partitions.partition import Partition
from ottla.broker.replicas.fetcher import Move
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.faults import Drop, Fail, Fault
from ottla.model.errors import Damaged, ErrorCode, Refusal
from ottla.model.types import TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages import alter_partition_reassignments as wire
from ottla.protocol.messages import delete_records
from ottla.records.batch import Batch
from ottla.replication.follower import Truncate
from ottla.storage.checkpoint import decode_offsets
from ottla.storage.checkpoints import Draft
from ottla.storage.directory import LogDirectory
from ottla.storage.log import Log
from tests.unit.broker.following import batch
from tests.unit.broker.replicating import Cluster, Node, replicating

NAME = TopicPartition("t", 0)


def test_follower_does_not_append_records_of_a_newer_epoch_than_it_follows() -> None:
    with replicating(brokers=2) as cluster:
        cluster.topic(factor=2)
        leader, (follower,) = cluster.leader(), cluster.followers()
        cluster.produce(leader, b"a")
        # As if the leader had been deposed, truncated and refilled by the next one meanwhile.
        newer = Batch(bytearray(batch(1, epoch=leader.partition().leader_epoch + 1)))
        leader.partition().log.append([newer], cluster.clock.wall())
        for watching in list(leader.partition().followers_watching):
            watching.grew()
        cluster.pass_ms(2000)
        assert follower.partition().log.end_offset == 1
        assert follower.partition().log.epochs.latest == leader.partition().leader_epoch


def away_too_long(cluster: Cluster) -> tuple[Node, Node]:
    """The leader, and a follower that is not started yet: what it lacks has been deleted."""
    cluster.topic(factor=2)
    leader, (follower,) = cluster.leader(), cluster.followers()
    cluster.produce(leader, b"a")
    follower.kill()
    cluster.notice_death(follower)
    for value in (b"b", b"c", b"d"):
        cluster.produce(leader, value)
    asked = delete_records.DeleteRecordsPartition(0, 3)
    topic = delete_records.DeleteRecordsTopic("t", [asked])
    request = delete_records.Request([topic], timeout_ms=1000)
    cluster.ask(leader, request, delete_records.Response)
    return leader, follower


def test_a_follower_that_was_away_too_long_begins_where_the_leaders_log_does() -> None:
    with replicating(brokers=2) as cluster:
        _, follower = away_too_long(cluster)
        follower.start()
        cluster.until(lambda: len(cluster.state().isr) == 2)
        assert follower.partition().log.log_start_offset == 3
        assert follower.values() == [b"d"]


@pytest.mark.parametrize("flush_messages", [1, 1000])
def test_a_follower_begins_inside_of_a_batch_if_the_leaders_log_does(flush_messages: int) -> None:
    with replicating(brokers=2, log_flush_interval_messages=flush_messages) as cluster:
        cluster.topic(factor=2)
        leader, (follower,) = cluster.leader(), cluster.followers()
        follower.kill()
        cluster.notice_death(follower)
        cluster.produce(leader, b"a", b"b", b"c", b"d", b"e")
        asked = delete_records.DeleteRecordsPartition(0, 3)
        topic = delete_records.DeleteRecordsTopic("t", [asked])
        request = delete_records.Request([topic], timeout_ms=1000)
        cluster.ask(leader, request, delete_records.Response)
        follower.start()
        cluster.until(lambda: len(cluster.state().isr) == 2)
        log = follower.partition().log
        assert log.end_offset == 5
        if flush_messages == 1:
            assert log.recovery_point == 5  # Else it would not count as in sync.
        cluster.until(lambda: log.log_start_offset == 3)
        cluster.produce(leader, b"f")
        cluster.until(lambda: log.end_offset == 6)


@pytest.mark.parametrize(
    "fault", [Drop(), Fail(ApiKey.LIST_OFFSETS, ErrorCode.NOT_LEADER_OR_FOLLOWER)]
)
def test_a_follower_that_is_not_told_where_to_begin_asks_again(fault: Fault) -> None:
    with replicating(brokers=2) as cluster:
        leader, follower = away_too_long(cluster)

        def spoiled(request: object, reply: Reply, broker: Broker) -> Reply | None:
            # Something else changed meanwhile, so that the next request was made up without it.
            (fetcher,) = follower.broker.replicas._fetchers.values()
            fetcher._plan._look(broker.now)
            return fault(request, reply, broker)

        leader.broker.faults.add(ApiKey.LIST_OFFSETS, spoiled, 2)
        follower.start()
        cluster.until(lambda: len(cluster.state().isr) == 2)
        assert leader.broker.faults.left(ApiKey.LIST_OFFSETS) == 0
        assert follower.values() == [b"d"]


def test_the_start_of_the_log_follows_the_leaders() -> None:
    with replicating(brokers=2) as cluster:
        cluster.topic(factor=2)
        leader, (follower,) = cluster.leader(), cluster.followers()
        for value in (b"a", b"b"):
            cluster.produce(leader, value)
        asked = delete_records.DeleteRecordsPartition(0, 1)
        topic = delete_records.DeleteRecordsTopic("t", [asked])
        request = delete_records.Request([topic], timeout_ms=1000)
        cluster.ask(leader, request, delete_records.Response)
        cluster.until(lambda: follower.partition().log.log_start_offset == 1)


def test_a_leader_that_moved_is_found_again() -> None:
    with replicating(brokers=2, replica_fetch_backoff_ms=100) as cluster:
        cluster.topic(factor=2)
        leader, (follower,) = cluster.leader(), cluster.followers()
        cluster.network.reset_some(leader.host, 1.0)
        assert cluster.produce(leader, b"a").error_code == 0
        assert follower.values() == [b"a"]


def test_what_is_moved_away_is_not_kept() -> None:
    with replicating() as cluster:
        cluster.topic(factor=2)
        cluster.produce(cluster.leader(), b"a")
        (other,) = [n for n in cluster.nodes if n not in cluster.state().replicas]
        leader, (leaving,) = cluster.leader(), cluster.followers()
        moved = wire.ReassignablePartition(0, [leader.number, other])
        request = wire.Request(topics=[wire.ReassignableTopic("t", [moved])])
        cluster.log.decide(request)
        cluster.until(lambda: not cluster.state().removing and not cluster.state().adding)
        cluster.pass_ms(20)
        assert cluster.nodes[other].values() == [b"a"]
        assert NAME not in leaving.broker.directories.online()[0].logs
        assert cluster.produce(cluster.leader(), b"b").error_code == 0


def test_a_new_partition_does_not_wait_for_a_fetch_that_waits() -> None:
    with replicating(brokers=2, replica_fetch_wait_max_ms=20_000) as cluster:
        cluster.topic("other", partitions=4, factor=2)
        cluster.pass_ms(1_000)
        cluster.topic(factor=2)
        before = cluster.clock.monotonic()
        assert cluster.produce(cluster.leader(), b"a").error_code == 0
        assert cluster.clock.monotonic() - before < 100


def test_a_leader_that_answers_every_fetch_with_an_error_is_not_asked_without_a_rest() -> None:
    with replicating(brokers=2, replica_fetch_backoff_ms=1000) as cluster:
        cluster.topic(factor=2)
        leader = cluster.leader()
        cluster.produce(leader, b"a")
        fault = Fail(ApiKey.FETCH, ErrorCode.UNKNOWN_SERVER_ERROR)
        leader.broker.faults.add(ApiKey.FETCH, fault, 1000)
        before = leader.broker.metrics.requests[ApiKey.FETCH]
        cluster.pass_ms(10_000)
        assert 5 <= leader.broker.metrics.requests[ApiKey.FETCH] - before <= 15


def test_truncation_of_many_logs_lowers_their_recovery_points_on_disk_with_few_writes() -> None:
    with replicating(brokers=2) as cluster:
        cluster.topic(partitions=12, factor=2)
        node = cluster.nodes[1]
        led = [index for index in range(12) if cluster.state(index).leader == 2]
        for index in led:
            cluster.produce(cluster.nodes[2], b"a", index=index)
        for index in led:
            log = node.partition(index).log
            more = Batch(bytearray(batch(1, epoch=cluster.state(index).leader_epoch)))
            log.append([more], cluster.clock.wall())  # The leader never had it.
            log.sync()
        node.broker.directories.online()[0].checkpoint({})
        written, cut = [], []
        write, truncate_to = Draft.write, Log.truncate_to

        def write_noting(draft: Draft) -> None:
            write(draft)
            written.append(draft)

        def truncate_noting(log: Log, offset: int) -> None:
            if offset < log.end_offset:
                content = node.disk.read("/data/recovery-point-offset-checkpoint")
                points = decode_offsets("", content)
                assert points[log.topic_partition] <= offset
                cut.append(log)
            truncate_to(log, offset)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Draft, "write", write_noting)
            patch.setattr(Log, "truncate_to", truncate_noting)
            fetcher = node.broker.replicas._fetchers[2]
            for index in led:
                fetcher._plan.changed((node.partition(index).topic_id, index))
            cluster.loop.call_soon(fetcher._nudge)
            cluster.until(lambda: len(cut) == len(led))
        assert len(written) <= 3
        for index in led:
            assert node.values(index) == [b"a"]


def test_damage_met_while_following_costs_that_partition_which_is_fetched_again() -> None:
    with replicating() as cluster:
        cluster.topic("t")
        cluster.produce(cluster.leader(), b"a")
        node = cluster.followers()[0]
        log = node.partition().log

        def meet_damage(*_: object) -> None:
            raise Damaged(log.directory, 0, "told so")

        log.append = meet_damage  # type: ignore[method-assign, assignment]
        cluster.produce(cluster.leader(), b"b", acks=1)
        cluster.until(lambda: node.broker.partitions.damages == 1)
        cluster.until(lambda: node.number not in cluster.state().isr)
        cluster.until(lambda: node.number in cluster.state().isr)
        assert node.values() == [b"a", b"b"]
        assert not node.broker.failed.done()


def test_a_log_without_epochs_is_cut_to_its_high_watermark_before_the_first_fetch() -> None:
    with replicating(brokers=2) as cluster:
        cluster.topic(factor=2)
        leader, (follower,) = cluster.leader(), cluster.followers()
        cluster.produce(leader, b"a")
        cluster.until(lambda: follower.partition().high_watermark == 1)
        cluster.produce(leader, b"b", acks=1)
        cluster.until(lambda: follower.partition().log.end_offset == 2)
        follower.partition().log.epochs.clear()  # As a log of before KIP-101 has it.
        follower.partition().high_watermark = 1
        cut: list[int] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                LogDirectory, "truncate_log", lambda self, name, offset: cut.append(offset)
            )
            epoch = cluster.state().leader_epoch
            cluster.loop.call_soon(
                follower.broker.replicas.follow, follower.partition(), leader.number, epoch + 1
            )
            cluster.until(lambda: cut == [1])


def test_no_fetch_is_sent_while_an_answer_is_not_durable_yet() -> None:
    with replicating(brokers=2) as cluster:
        cluster.topic(factor=2)
        leader, (follower,) = cluster.leader(), cluster.followers()
        cluster.pass_ms(100)
        fetcher = follower.broker.replicas._fetchers[leader.number]
        fetcher._is_settling = True  # The sync of what the last answer brought is under way.
        fetcher._plan.follow((bytes(16), 7), follower.partition().follower)
        sent = len(fetcher._sent)
        assert fetcher._plan.is_under_way

        async def send_more() -> int:
            fetcher._send_more()
            return len(fetcher._sent)

        assert cluster.run(send_more()) == sent
        fetcher._is_settling = False
        assert cluster.run(send_more()) == sent + 1


def test_an_answer_is_settled_while_its_records_are_synced() -> None:
    with replicating(brokers=2) as cluster:
        cluster.topic(factor=2, flush_messages="1")
        leader, (follower,) = cluster.leader(), cluster.followers()
        fetcher = follower.broker.replicas._fetchers[leader.number]
        seen: list[bool] = []
        sync_all = LogSync.all

        async def note(sync: LogSync, partitions: Iterable[Partition]) -> None:
            if sync is follower.broker.partitions.sync:
                seen.append(fetcher._is_settling)
            await sync_all(sync, partitions)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LogSync, "all", note)
            assert cluster.produce(leader, b"a").error_code == 0
        assert seen == [True]
        assert not fetcher._is_settling


def test_truncation_lowers_a_recovery_point_again_that_a_sync_has_raised_meanwhile() -> None:
    with replicating(brokers=2) as cluster:
        cluster.topic(factor=2)
        leader, (follower,) = cluster.leader(), cluster.followers()
        cluster.produce(leader, b"a")
        log, epoch = follower.partition().log, cluster.state().leader_epoch
        log.append([Batch(bytearray(batch(1, epoch=epoch)))], cluster.clock.wall())
        log.sync()
        directory = follower.broker.directories.of(log)
        directory.checkpoint({})
        write, raised = CheckpointWriter.write, []

        async def write_and_raise(writer: CheckpointWriter, directory: LogDirectory) -> None:
            await write(writer, directory)
            if not raised:
                raised.append(directory)
                log.recovery_point = 2  # A sync that had begun before has ended.
                directory.checkpoint({})

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(CheckpointWriter, "write", write_and_raise)
            fetcher = follower.broker.replicas._fetchers[leader.number]
            fetcher._plan.changed((follower.partition().topic_id, 0))
            cluster.loop.call_soon(fetcher._nudge)
            cluster.until(lambda: log.end_offset == 1)
        assert raised == [directory]
        content = follower.disk.read("/data/recovery-point-offset-checkpoint")
        assert decode_offsets("", content)[NAME] <= 1
        assert not follower.broker.failed.done()


def test_a_first_move_of_an_earlier_following_leaves_the_present_one() -> None:
    with replicating(brokers=2) as cluster:
        cluster.topic(factor=2)
        leader, (follower,) = cluster.leader(), cluster.followers()
        cluster.produce(leader, b"a")
        partition = follower.partition()
        assert partition.follower is not None
        fetcher = follower.broker.replicas._fetchers[leader.number]
        earlier = copy(partition.follower)
        fetcher._first_moves.append(Move(partition, earlier, Truncate(0)))
        cluster.run(fetcher._move_first())
        assert fetcher._plan._followed[partition.topic_id, 0] is partition.follower
        assert follower.values() == [b"a"]


def test_a_new_role_before_a_truncation_leaves_the_high_watermark_in_the_log() -> None:
    with replicating(brokers=2) as cluster:
        cluster.topic(factor=2)
        leader, (follower,) = cluster.leader(), cluster.followers()
        cluster.produce(leader, b"a", b"b")
        partition = follower.partition()
        cluster.until(lambda: partition.high_watermark == 2)
        partition.log.advance_log_start(2)
        fetcher = follower.broker.replicas._fetchers[leader.number]
        for take_role in (
            partition.stand_by,
            lambda: partition.follow(partition.leader_epoch),
            lambda: partition.lead_replicas(cluster.state()),
        ):
            fetcher._must_lower(partition, Truncate(1))
            assert partition.high_watermark == 1
            take_role()
            assert partition.high_watermark == 2


def test_damage_met_while_truncating_costs_that_partition_which_is_fetched_again() -> None:
    with replicating() as cluster:
        cluster.topic("t")
        leader, node = cluster.leader(), cluster.followers()[0]
        cluster.produce(leader, b"a")
        log, epoch = node.partition().log, cluster.state().leader_epoch
        more = Batch(bytearray(batch(1, epoch=epoch)))
        log.append([more], cluster.clock.wall())  # The leader never had it.

        def meet_damage(*_: object) -> None:
            raise Damaged(log.directory, 0, "told so")

        log.truncate_to = meet_damage  # type: ignore[method-assign, assignment]
        fetcher = node.broker.replicas._fetchers[leader.number]
        fetcher._plan.changed((node.partition().topic_id, 0))
        cluster.loop.call_soon(fetcher._nudge)
        cluster.until(lambda: node.broker.partitions.damages == 1)
        cluster.until(lambda: node.number not in cluster.state().isr)
        cluster.until(lambda: node.number in cluster.state().isr)
        assert node.values() == [b"a"]
        assert not node.broker.failed.done()


def test_a_log_that_could_not_be_cut_for_want_of_room_is_cut_when_there_is_some() -> None:
    with replicating(brokers=2, replica_fetch_backoff_ms=1000) as cluster:
        cluster.topic(factor=2)
        leader, (follower,) = cluster.leader(), cluster.followers()
        cluster.produce(leader, b"a")
        log, epoch = follower.partition().log, cluster.state().leader_epoch
        log.append([Batch(bytearray(batch(1, epoch=epoch)))], cluster.clock.wall())
        log.sync()
        follower.broker.directories.of(log).checkpoint({})

        async def refuse(writer: CheckpointWriter, directory: LogDirectory) -> None:
            raise Refusal(ErrorCode.KAFKA_STORAGE_ERROR, "no room")

        fetcher = follower.broker.replicas._fetchers[leader.number]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(CheckpointWriter, "write", refuse)
            fetcher._plan.changed((follower.partition().topic_id, 0))
            cluster.loop.call_soon(fetcher._nudge)
            before = leader.broker.metrics.requests[ApiKey.FETCH]
            cluster.pass_ms(5_000)
            assert log.end_offset == 2
            assert leader.broker.metrics.requests[ApiKey.FETCH] - before < 50
        cluster.until(lambda: log.end_offset == 1)


def flip_bit_of_base_offset(node: Node, offset: int, bit: int) -> None:
    """In the header of the batch that begins at `offset`, in the file of that node."""
    segment = node.partition().log.segments[-1]
    [place] = [at for at, found in segment.batches() if found.base_offset == offset]
    node.disk.flip_bit(segment.log_path, place + 7 - bit // 8, bit % 8)


def test_a_batch_that_begins_in_what_is_committed_cuts_nothing() -> None:
    """No checksum covers where a batch begins: a bit of the leader's file may have changed."""
    with replicating(brokers=2) as cluster:
        cluster.topic(factor=2)
        leader, (follower,) = cluster.leader(), cluster.followers()
        for value in (b"a", b"b", b"c"):
            cluster.produce(leader, value)
        follower.kill()
        cluster.notice_death(follower)
        cluster.produce(leader, b"d", b"e", b"f")
        flip_bit_of_base_offset(leader, 3, 1)  # It begins at offset 1 now.
        follower.start()
        cluster.pass_ms(5_000)
        assert follower.values() == [b"a", b"b", b"c"]
        assert follower.number not in cluster.state().isr
        assert not follower.broker.failed.done()


def test_a_batch_that_begins_past_the_next_one_ends_no_follower() -> None:
    with replicating(brokers=2) as cluster:
        cluster.topic(factor=2)
        leader, (follower,) = cluster.leader(), cluster.followers()
        cluster.produce(leader, b"a")
        follower.kill()
        cluster.notice_death(follower)
        cluster.produce(leader, b"b")
        cluster.produce(leader, b"c")
        flip_bit_of_base_offset(leader, 1, 20)
        follower.start()
        cluster.pass_ms(5_000)
        assert follower.values() == [b"a"]
        assert follower.number not in cluster.state().isr
        assert not follower.broker.failed.done()
