import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import create_partitions as wire
from tests.unit.broker.serving import serving


@pytest.mark.parametrize("version", range(4))
def test_new_partitions_can_be_written_at_once(version: int) -> None:
    with serving() as world:
        world.topic("t", 1)
        request = wire.Request([wire.CreatePartitionsTopic("t", 3, None)])
        (result,) = world.client().ask(request, version).results
        assert (result.error_code, result.error_message) == (0, None)
        assert world.partition("t", 2).log.end_offset == 0


def test_fewer_partitions_are_refused() -> None:
    with serving() as world:
        world.topic("t", 3)
        request = wire.Request([wire.CreatePartitionsTopic("t", 2, None)])
        (result,) = world.client().ask(request).results
        assert result.error_code == ErrorCode.INVALID_PARTITIONS
        assert len(world.broker.image.topics_by_name["t"].partitions) == 3
