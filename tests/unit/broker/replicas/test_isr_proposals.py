"""What leaders ask the controller about their ISRs, and how often."""

from typing import Any

from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.messages import alter_partition
from tests.unit.broker.replicating import Cluster, replicating


def asked_by(cluster: Cluster) -> list[alter_partition.Request]:
    """Every AlterPartition from here on."""
    asked: list[alter_partition.Request] = []
    decide = cluster.log.decide

    def listening(request: Any) -> Any:  # noqa: ANN401
        if isinstance(request, alter_partition.Request):
            asked.append(request)
        return decide(request)

    cluster.log.decide = listening  # type: ignore[method-assign]
    return asked


def test_a_slow_follower_of_many_partitions_costs_a_few_requests() -> None:
    with replicating(brokers=2, replica_lag_time_max_ms=500) as cluster:
        cluster.topic(partitions=30, factor=2)
        asked = asked_by(cluster)
        slow = cluster.nodes[2]
        led = [i for i in range(30) if cluster.state(i).leader == 1]
        cluster.network.clog(slow.host, 60_000_000_000)
        for index in led:
            cluster.produce(cluster.nodes[1], b"x", acks=1, index=index)
        cluster.until(lambda: all(cluster.state(i).isr == (1,) for i in led))
        mine = [request for request in asked if request.broker_id == 1]
        assert len(mine) <= 2
        cluster.pass_ms(20)
        assert cluster.nodes[1].broker.replicas.proposals.shrunk == len(led)


def test_what_the_controller_did_not_decide_is_asked_again() -> None:
    with replicating(replica_lag_time_max_ms=500) as cluster:
        cluster.topic(min_insync_replicas="2")
        decide, refused = cluster.log.decide, []

        def refusing(request: Any) -> Any:  # noqa: ANN401
            if isinstance(request, alter_partition.Request) and len(refused) < 3:
                refused.append(request)
                return Refusal(ErrorCode.NOT_CONTROLLER)
            return decide(request)

        cluster.log.decide = refusing  # type: ignore[method-assign]
        cluster.network.clog(cluster.followers()[0].host, 10_000_000_000)
        assert cluster.produce(cluster.leader(), b"a").error_code == 0
        assert len(refused) == 3
        assert len(cluster.state().isr) == 2


def test_members_are_named_with_their_incarnation() -> None:
    with replicating() as cluster:
        cluster.topic()
        dead = cluster.followers()[0]
        dead.kill()
        cluster.notice_death(dead)
        asked = asked_by(cluster)
        dead.start()
        cluster.until(lambda: len(cluster.state().isr) == 3)
        states = asked[-1].topics[0].partitions[0].new_isr_with_epochs
        epochs = {state.broker_id: state.broker_epoch for state in states}
        assert epochs[dead.number] == dead.broker.lifecycle.broker_epoch
