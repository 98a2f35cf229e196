"""The table of APIs, and its ways that need no handler: decisions and the quorum's requests."""

import pytest

from ottla.broker.wire.apis import APIS, Api, Listener, error_response
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.principal import ANONYMOUS, Origin
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages import (
    allocate_producer_ids,
    broker_heartbeat,
    create_topics,
    describe_quorum,
    fetch,
    unregister_broker,
    vote,
)
from ottla.quorum.log_view import TOPIC, OffsetAndEpoch
from ottla.quorum.messages import fetch_request, partition_of, vote_request
from ottla.quorum.voters import ReplicaKey
from tests.unit.broker.quorum_cluster import cluster_of
from tests.unit.broker.serving import serving

CONTROLLER = "CONTROLLER"


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.key.name)
def test_every_row_is_complete(api: Api) -> None:
    assert api.broker or api.controller, "some listener serves it"
    request, response = api.messages.Request, api.messages.Response
    known = range(0 if api.key == ApiKey.PRODUCE else request.VERSIONS[0], request.VERSIONS[-1] + 1)
    for listener in Listener:
        versions = api.versions_on(listener)
        assert versions
        assert known[0] <= versions[0] <= versions[-1] <= known[-1]
    failed = error_response(api.key, request(), versions[-1], ErrorCode.UNKNOWN_SERVER_ERROR)
    assert isinstance(failed, response)


def test_requests_that_only_nodes_send_are_decided_here() -> None:
    with serving() as world:
        client = world.client(CONTROLLER)
        epoch = world.broker.lifecycle.broker_epoch
        block = client.ask(allocate_producer_ids.Request(1, epoch), 0)
        assert (block.error_code, block.producer_id_len) == (0, 1000)
        heard = client.ask(broker_heartbeat.Request(1, epoch, 999), 1)
        assert (heard.error_code, heard.is_fenced) == (0, False)
        stale = client.ask(broker_heartbeat.Request(1, epoch + 1, 999), 1)
        assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH
        gone = client.ask(unregister_broker.Request(7), 0)
        assert gone.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_the_metadata_log_can_be_fetched() -> None:
    with serving() as world:
        driver = world.broker.quorum
        key = ReplicaKey(driver.identity.node_id, b"o" * 16)
        request = fetch_request(
            driver.identity.cluster_id,
            driver.leader_epoch,
            key,
            OffsetAndEpoch(0, 0),
            None,
            wait_ms=0,
            bytes_max=1 << 20,
        )
        answer = world.client(CONTROLLER).ask(request, 18)
        part = partition_of(answer)
        assert (part.error_code, part.high_watermark) == (0, driver.image.offset + 1)
        assert bytes(part.records) == driver.log.read(0, 1 << 20)
        refused = world.client(CONTROLLER)
        other = fetch.Request(topics=[fetch.FetchTopic("t", b"t" * 16, [fetch.FetchPartition()])])
        refused.send(other, 17)
        world.settle()
        assert not refused.channel.is_open  # Nothing else can be fetched here.


def test_a_leader_refuses_its_vote() -> None:
    with serving() as world:
        driver = world.broker.quorum
        stranger = ReplicaKey(driver.identity.node_id, b"o" * 16)
        request = vote_request(
            driver.identity.cluster_id,
            driver.leader_epoch,
            stranger,
            driver.quorum.key,
            OffsetAndEpoch(999, 9),
            pre_vote=True,
        )
        answer = partition_of(world.client(CONTROLLER).ask(request, 2))
        assert (answer.vote_granted, answer.leader_id) == (False, 1)
        assert isinstance(request, vote.Request)


def test_a_controller_that_is_not_the_active_one_says_so_and_forwards_nothing() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        follower = cluster.followers[0].broker
        request = create_topics.Request([create_topics.CreatableTopic("t", 1, 1)])
        origin = Origin(ANONYMOUS, "", "client")
        with pytest.raises(Refusal) as refused:
            cluster.run(follower.dispatchers[CONTROLLER]._deciders.submit(request, origin))
        assert refused.value.code == ErrorCode.NOT_CONTROLLER
        assert cluster.followers[0].create("t") == 0


def test_the_quorum_describes_itself_at_its_leader() -> None:
    with serving() as world:
        part = describe_quorum.RequestTopicData(TOPIC, [describe_quorum.RequestPartitionData(0)])
        answer = world.client(CONTROLLER).ask(describe_quorum.Request([part]), 2)
        assert answer.topics[0].partitions[0].leader_id == 1
