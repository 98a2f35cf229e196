"""ElectLeaders through a broker."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import elect_leaders as wire
from tests.unit.broker.serving import serving


@pytest.mark.parametrize("version", range(3))
def test_a_partition_that_its_preferred_replica_leads_needs_no_election(version: int) -> None:
    with serving() as world:
        world.topic("t", 2)
        request = wire.Request(0, [wire.TopicPartitions("t", [0, 7])], 1000)
        answer = world.client().ask(request, version)
        codes = [p.error_code for p in answer.replica_election_results[0].partition_result]
        assert codes == [ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_kind_of_election_that_is_none_is_refused() -> None:
    with serving() as world:
        request = wire.Request(9, [wire.TopicPartitions("t", [0])], 1000)
        answer = world.client().ask(request)
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        (result,) = answer.replica_election_results[0].partition_result
        assert result.error_code == ErrorCode.INVALID_REQUEST
