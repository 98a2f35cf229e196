"""Brokers that replicate: leaders, followers, and what becomes of records when one of them dies."""

import pytest

from ottla.client.admin import Operation, ResourceType
from ottla.model.errors import ErrorCode
from ottla.model.types import NodeId
from ottla.protocol.messages import (
    alter_partition_reassignments,
    find_coordinator,
    incremental_alter_configs,
    offset_commit,
    offset_fetch,
    produce,
    unregister_broker,
)
from tests.unit.broker.replicating import Cluster, produced, replicating


def test_a_record_that_is_acknowledged_is_on_every_replica() -> None:
    with replicating() as cluster:
        cluster.topic()
        answer = cluster.produce(cluster.leader(), b"a", b"b")
        assert (answer.error_code, answer.base_offset) == (0, 0)
        for node in cluster.nodes.values():
            assert node.values() == [b"a", b"b"]
        assert cluster.leader().partition().high_watermark == 2


def test_only_the_leader_is_written_to() -> None:
    with replicating() as cluster:
        cluster.topic()
        for node in cluster.followers():
            answer = cluster.produce(node, b"a")
            assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_consumers_see_what_is_committed() -> None:
    with replicating(brokers=2) as cluster:
        cluster.topic(factor=2)
        leader, (follower,) = cluster.leader(), cluster.followers()
        cluster.produce(leader, b"a")
        follower.kill()
        assert cluster.produce(leader, b"b", acks=1).error_code == 0
        fetched = cluster.fetch(leader)
        assert fetched.high_watermark == 1
        assert leader.values() == [b"a", b"b"]
        cluster.notice_death(follower)
        assert cluster.fetch(leader, 1).high_watermark == 2  # Alone in sync now.


def test_a_leader_that_reads_of_a_raised_minimum_and_a_smaller_isr_at_once_commits_nothing() -> (
    None
):
    """Whoever left the ISR stayed eligible under the new minimum, and lacks the last record."""
    with replicating(brokers=2) as cluster:
        cluster.topic(factor=2, min_insync_replicas="1")
        leader, (follower,) = cluster.leader(), cluster.followers()
        cluster.produce(leader, b"a")
        follower.kill()
        assert cluster.produce(leader, b"b", acks=1).error_code == 0
        leader.quorum.is_cut_off = True
        config = incremental_alter_configs.AlterableConfig(
            "min.insync.replicas", Operation.SET, "2"
        )
        resource = incremental_alter_configs.AlterConfigsResource(ResourceType.TOPIC, "t", [config])
        cluster.log.decide(incremental_alter_configs.Request([resource]))
        cluster.notice_death(follower)
        leader.quorum.is_cut_off = False
        leader.quorum.read()
        assert leader.partition().leader.isr == (leader.number,)
        assert leader.partition().high_watermark == 1


def test_a_leader_that_dies_loses_nothing_that_was_acknowledged() -> None:
    with replicating() as cluster:
        cluster.topic(min_insync_replicas="2")
        for index in range(20):
            assert cluster.produce(cluster.leader(), b"%d" % index).error_code == 0
        dead = cluster.leader()
        dead.kill()
        cluster.notice_death(dead)
        assert cluster.leader() is not dead
        assert cluster.produce(cluster.leader(), b"after").error_code == 0
        expected = [b"%d" % index for index in range(20)] + [b"after"]
        for node in cluster.nodes.values():
            if node.is_up:
                assert node.values() == expected
        dead.start()
        cluster.until(lambda: len(cluster.state().isr) == 3)
        assert dead.values() == expected


def test_what_only_the_old_leader_had_is_cut_away() -> None:
    with replicating() as cluster:
        cluster.topic(min_insync_replicas="2")
        old, followers = cluster.leader(), cluster.followers()
        cluster.produce(old, b"a")
        for node in followers:
            node.kill()
        assert cluster.produce(old, b"lost", acks=1).error_code == 0
        old.kill()
        for node in (old, *followers):
            cluster.notice_death(node)
        assert cluster.state().isr == (followers[1].number,)  # The last one that was noticed.
        for node in followers:
            node.start()
        cluster.until(lambda: len(cluster.state().isr) == 2)
        assert cluster.produce(cluster.leader(), b"b").error_code == 0
        old.start()
        cluster.until(lambda: len(cluster.state().isr) == 3)
        for node in cluster.nodes.values():
            assert node.values() == [b"a", b"b"]


def test_too_few_in_sync_refuse_acks_all() -> None:
    with replicating() as cluster:
        cluster.topic(min_insync_replicas="2")
        for node in cluster.followers():
            node.kill()
            cluster.notice_death(node)
        leader = cluster.leader()
        assert cluster.produce(leader, b"a").error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert cluster.produce(leader, b"b", acks=1).error_code == 0
        assert leader.partition().high_watermark == 0


def test_an_append_that_too_few_followers_get_times_out() -> None:
    with replicating() as cluster:
        cluster.topic(min_insync_replicas="2")
        for node in cluster.followers():
            node.kill()
        answer = cluster.produce(cluster.leader(), b"a", timeout_ms=300)
        assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT


def test_a_slow_follower_leaves_the_isr_and_comes_back() -> None:
    with replicating(replica_lag_time_max_ms=500) as cluster:
        cluster.topic(min_insync_replicas="2")
        slow = cluster.followers()[0]
        cluster.network.clog(slow.host, 3_000_000_000)
        answer = cluster.produce(cluster.leader(), b"a")
        assert answer.error_code == 0
        assert slow.number not in cluster.state().isr
        cluster.until(lambda: len(cluster.state().isr) == 3)
        assert slow.values() == [b"a"]


def test_many_produces_of_one_connection_replicate_at_once_and_in_order() -> None:
    with replicating() as cluster:
        cluster.topic()
        leader = cluster.leader()
        topic_id = cluster.log.image.topics_by_name["t"].id

        async def many() -> list[int]:
            connection = await cluster.connection(leader)
            sent = [
                connection.send(produced(topic_id, (b"%d" % n,), -1, 0, 5_000), produce.Response)
                for n in range(50)
            ]
            answers = [await each for each in sent]
            return [a.responses[0].partition_responses[0].base_offset for a in answers]

        before = cluster.clock.monotonic()
        assert cluster.run(many()) == list(range(50))
        assert cluster.clock.monotonic() - before < 50  # Not one round trip after the other.
        for node in cluster.nodes.values():
            assert node.values() == [b"%d" % n for n in range(50)]


def test_one_session_carries_all_partitions() -> None:
    with replicating(brokers=2) as cluster:
        cluster.topic(partitions=40, factor=2)
        for index in range(40):
            assert cluster.produce(cluster.leader(index), b"x", index=index).error_code == 0
        for node in cluster.nodes.values():
            assert len(node.broker.replicas._fetchers) == 1
            assert len(node.broker.replicas.sessions._sessions) == 1


def test_a_restart_of_all_loses_nothing() -> None:
    with replicating() as cluster:
        cluster.topic(min_insync_replicas="2")
        for index in range(5):
            cluster.produce(cluster.leader(), b"%d" % index)
        nodes = list(cluster.nodes.values())
        for node in nodes:
            node.kill()
        for node in nodes:
            cluster.notice_death(node)
        for node in nodes:
            node.start()
        cluster.until(lambda: len(cluster.state().isr) == 3)
        assert cluster.produce(cluster.leader(), b"5").error_code == 0
        for node in nodes:
            assert node.values() == [b"%d" % index for index in range(6)]


def test_processes_that_are_killed_stay_eligible_to_lead() -> None:
    """KIP-966 trusts nobody who stopped uncleanly; a killed process knows that it lost nothing."""
    with replicating(features={"eligible.leader.replicas.version": 1}) as cluster:
        cluster.topic(min_insync_replicas="2")
        cluster.produce(cluster.leader(), b"a")
        nodes = list(cluster.nodes.values())
        for node in nodes:
            node.kill()
            cluster.notice_death(node)
        last = cluster.state()
        assert (last.leader, last.isr) == (-1, ())
        assert len(last.elr) == 2  # The first left while there were enough.
        eligible = cluster.nodes[last.elr[0]]
        eligible.start()
        cluster.pass_ms(20)
        state = cluster.state()
        assert (state.leader, state.leader_recovery_state) == (eligible.number, 0)


def test_who_leads_after_all_lost_power_says_that_something_may_be_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with replicating(features={"eligible.leader.replicas.version": 1}) as cluster:
        cluster.topic(min_insync_replicas="2")
        cluster.produce(cluster.leader(), b"a")
        last = cluster.leader()
        nodes = list(cluster.nodes.values())
        for node in nodes:
            node.kill()
            node.disk.cut_power()
        for node in [*(node for node in nodes if node is not last), last]:
            cluster.notice_death(node)
        for node in nodes:
            node.start()
        cluster.until(lambda: cluster.state().leader == last.number)
        cluster.pass_ms(20)
        assert "t-0 is led here from offset" in caplog.text
        assert "may be lost" in caplog.text
        assert last.broker.partitions.unclean_elections == 1
        others = [node for node in nodes if node is not last]
        assert not any(node.broker.partitions.unclean_elections for node in others)


def test_a_broker_that_was_cut_off_fetches_over_new_connections() -> None:
    """Those of before may be silent for long: TCP repeats itself after ever longer pauses."""
    with replicating() as cluster:
        cluster.topic()
        cluster.produce(cluster.leader(), b"a")
        follower = cluster.followers()[0]
        fetcher = follower.broker.replicas._fetchers[NodeId(cluster.leader().number)]
        before = fetcher._connection
        assert before is not None
        cluster.notice_death(follower)  # So it seemed.
        assert before.is_open
        cluster.run(follower.broker.lifecycle.heartbeat())
        cluster.until(lambda: follower.number in cluster.state().isr)
        assert not before.is_open
        assert cluster.produce(cluster.leader(), b"b").error_code == 0
        assert follower.values() == [b"a", b"b"]


def test_synced_replicas_sync_before_they_count() -> None:
    with replicating(brokers=2) as cluster:
        cluster.topic(factor=2, flush_messages="1", min_insync_replicas="2")
        assert cluster.produce(cluster.leader(), b"a").error_code == 0
        for node in cluster.nodes.values():
            assert node.partition().log.recovery_point == 1


def test_a_consumer_is_sent_to_the_replica_in_its_rack() -> None:
    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    with replicating(replica_selector_class=selector) as cluster:
        cluster.topic()
        leader, follower = cluster.leader(), cluster.followers()[0]
        cluster.produce(leader, b"a")
        assert cluster.fetch(leader, rack=f"r{leader.number}").preferred_read_replica == -1
        sent = cluster.fetch(leader, rack=f"r{follower.number}")
        assert (sent.preferred_read_replica, sent.records) == (follower.number, b"")
        assert cluster.fetch(leader, rack="elsewhere").preferred_read_replica == -1
        cluster.until(lambda: follower.partition().high_watermark == 1)
        fetched = cluster.fetch(follower, rack=f"r{follower.number}")
        assert b"a" in bytes(fetched.records)
        assert fetched.high_watermark == 1


def test_a_consumer_is_not_sent_to_a_replica_that_begins_later_than_it_reads() -> None:
    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    with replicating(replica_selector_class=selector) as cluster:
        cluster.topic()
        leader, follower = cluster.leader(), cluster.followers()[0]
        cluster.produce(leader, b"a")
        cluster.until(lambda: follower.partition().high_watermark == 1)
        follower.partition().log.advance_log_start(1)
        cluster.produce(leader, b"b")  # The follower's next fetch tells where its log begins.
        cluster.pass_ms(2_000)
        assert cluster.fetch(leader, rack=f"r{follower.number}").preferred_read_replica == -1


def test_without_a_selector_everyone_reads_from_the_leader() -> None:
    with replicating() as cluster:
        cluster.topic()
        cluster.produce(cluster.leader(), b"a")
        rack = f"r{cluster.followers()[0].number}"
        assert cluster.fetch(cluster.leader(), rack=rack).preferred_read_replica == -1


def test_a_group_survives_the_loss_of_its_coordinator() -> None:
    with replicating(offsets_topic_num_partitions=1, offsets_topic_replication_factor=3) as cluster:
        cluster.topic()
        node = cluster.nodes[1]
        ready = cluster.ask(node, find_coordinator.Request(coordinator_keys=["g"]), FOUND)
        cluster.until(lambda: "__consumer_offsets" in cluster.log.image.topics_by_name)
        cluster.pass_ms(50)
        assert ready is not None
        committed(cluster, 7)
        dead = cluster.leader(0, "__consumer_offsets")
        dead.kill()
        cluster.notice_death(dead)
        assert fetched_offset(cluster) == 7


FOUND = find_coordinator.Response


def committed(cluster: Cluster, offset: int) -> None:
    part = offset_commit.OffsetCommitRequestPartition(0, offset)
    topic = offset_commit.OffsetCommitRequestTopic(
        topic_id=cluster.log.image.topics_by_name["t"].id, partitions=[part]
    )
    request = offset_commit.Request(group_id="g", generation_id_or_member_epoch=-1, topics=[topic])
    leader = cluster.leader(0, "__consumer_offsets")
    answer = cluster.ask(leader, request, offset_commit.Response)
    assert answer.topics[0].partitions[0].error_code == 0


def fetched_offset(cluster: Cluster) -> int:
    group = offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=None)
    request = offset_fetch.Request(groups=[group])
    while True:
        leader = cluster.leader(0, "__consumer_offsets")
        answer = cluster.ask(leader, request, offset_fetch.Response).groups[0]
        if answer.error_code == 0:
            return answer.topics[0].partitions[0].committed_offset
        cluster.pass_ms(10)


def configure(cluster: Cluster, kind: ResourceType, name: str, **configs: str) -> None:
    changes = [
        incremental_alter_configs.AlterableConfig(key.replace("_", "."), Operation.SET, value)
        for key, value in configs.items()
    ]
    resource = incremental_alter_configs.AlterConfigsResource(kind, name, changes)
    answer = cluster.log.decide(incremental_alter_configs.Request([resource]))
    assert answer.responses[0].error_code == 0, answer
    cluster.pass_ms(20)


def reassign(cluster: Cluster, *nodes: int) -> None:
    part = alter_partition_reassignments.ReassignablePartition(0, list(nodes))
    topic = alter_partition_reassignments.ReassignableTopic("t", [part])
    answer = cluster.log.decide(alter_partition_reassignments.Request(topics=[topic]))
    assert answer.responses[0].partitions[0].error_code == 0, answer


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_throttled_move_takes_its_time_and_what_is_in_sync_does_not(side: str) -> None:
    """Half a megabyte at 50 kB a second; meanwhile acks=all waits for the others alone."""
    with replicating(replica_fetch_max_bytes=10_000) as cluster:
        cluster.topic(factor=2)
        leader, (follower,) = cluster.leader(), cluster.followers()
        for _ in range(50):
            cluster.produce(leader, bytes(10_000))
        for node in cluster.nodes:
            rate = {f"{side}_replication_throttled_rate": "50000"}
            configure(cluster, ResourceType.BROKER, str(node), **rate)
        throttled = {f"{side}_replication_throttled_replicas": "*"}
        configure(cluster, ResourceType.TOPIC, "t", **throttled)
        newcomer = ({1, 2, 3} - {leader.number, follower.number}).pop()
        began = cluster.clock.monotonic()
        reassign(cluster, leader.number, follower.number, newcomer)
        slowest_ms = 0
        while newcomer not in cluster.state().isr:
            asked = cluster.clock.monotonic()
            assert cluster.produce(leader, b"now").error_code == 0
            slowest_ms = max(slowest_ms, cluster.clock.monotonic() - asked)
            cluster.pass_ms(100)
        took_ms = cluster.clock.monotonic() - began
        assert 8_000 < took_ms < 13_000
        assert slowest_ms < 50


def test_a_throttle_that_is_taken_away_holds_nothing_up_any_more() -> None:
    with replicating(replica_fetch_max_bytes=10_000) as cluster:
        cluster.topic(factor=1)
        leader = cluster.leader()
        for _ in range(50):
            cluster.produce(leader, bytes(10_000))
        for node in cluster.nodes:
            rate = {"follower_replication_throttled_rate": "100"}
            configure(cluster, ResourceType.BROKER, str(node), **rate)
        replicas = {"follower_replication_throttled_replicas": "0:1,0:2,0:3"}
        configure(cluster, ResourceType.TOPIC, "t", **replicas)
        reassign(cluster, 1, 2, 3)
        cluster.pass_ms(5_000)
        assert len(cluster.state().isr) == 1
        configure(cluster, ResourceType.TOPIC, "t", follower_replication_throttled_replicas="7:1")
        cluster.until(lambda: len(cluster.state().isr) == 3, seconds=2)


def test_a_leader_that_is_unregistered_while_it_lives_is_in_sync_again_soon() -> None:
    """What it begins to follow meanwhile is fetched once it is registered again."""
    with replicating(brokers=2) as cluster:
        cluster.topic(factor=2, min_insync_replicas="2")
        leader, (other,) = cluster.leader(), cluster.followers()
        assert cluster.produce(leader, b"a").error_code == 0
        cluster.log.decide(unregister_broker.Request(leader.number))
        cluster.until(lambda: cluster.state().leader == other.number)
        cluster.until(lambda: len(cluster.state().isr) == 2)
        assert cluster.produce(other, b"b").error_code == 0
        assert leader.values() == [b"a", b"b"]
