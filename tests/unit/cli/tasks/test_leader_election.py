"""What an election tells."""

import json

import pytest

from ottla.cli.tasks.leader_election import elect
from ottla.client.errors import ClientError
from ottla.client.reassignments import Election
from ottla.model.errors import ErrorCode
from ottla.protocol.apis import ApiKey, request_class
from ottla.protocol.messages import elect_leaders as wire
from tests.unit.cli.cluster_world import ClusterWorld


def world_that_elects(*codes: int) -> ClusterWorld:
    world = ClusterWorld()
    world.broker.ranges[ApiKey.ELECT_LEADERS] = request_class(ApiKey.ELECT_LEADERS).VERSIONS
    results = [wire.PartitionResult(index, code) for index, code in enumerate(codes)]
    topic = wire.ReplicaElectionResult("t", results)
    world.broker.always[ApiKey.ELECT_LEADERS] = lambda request, version: wire.Response(
        replica_election_results=[topic]
    )
    return world


@pytest.mark.parametrize(
    ("code", "words"),
    [(0, "1 partition got another leader: t-0."), (ErrorCode.ELECTION_NOT_NEEDED, "already")],
)
def test_the_result_is_a_sentence(
    code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    world = world_that_elects(code)
    world.run(lambda: elect(world.cluster(), Election.PREFERRED, ["t:0"], as_json=False))
    assert words in capsys.readouterr().out


def test_a_refused_partition_fails_the_command_after_the_others_are_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    world = world_that_elects(0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)

    async def work() -> None:
        with pytest.raises(ClientError, match="1 partition could not get the leader"):
            await elect(world.cluster(), Election.PREFERRED, [], as_json=True)

    world.run(work)
    told = capsys.readouterr()
    assert json.loads(told.out) == {
        "elected": [{"topic": "t", "partition": 0}],
        "refused": [{"topic": "t", "partition": 1, "error": "PREFERRED_LEADER_NOT_AVAILABLE"}],
    }
    assert "t-1: " in told.err
