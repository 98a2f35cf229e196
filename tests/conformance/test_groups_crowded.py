"""A group of hundreds: everyone gets a share, and the rest shares anew when a third leaves."""

import asyncio
import resource
from collections.abc import Iterator

import pytest

from tests.conformance import librdkafka
from tests.conformance.broker_process import BrokerProcess, Flavour
from tests.conformance.crowd import ClassicMember, ConsumerMember, Crowd, Member, crowd

MEMBERS = 300
PARTITIONS = 400
SECONDS_MAX = 40
QUICK = {
    "group.initial.rebalance.delay.ms": "200",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.max.size": "1000",
}


@pytest.fixture(scope="module")
def broker(flavour: Flavour, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(4096, hard)), hard))
    process = BrokerProcess(flavour, tmp_path_factory.mktemp("crowded"), QUICK)
    process.start()
    yield process
    process.kill()


@pytest.mark.parametrize("kind", [ClassicMember, ConsumerMember])
def test_hundreds_share_a_topic_and_a_third_leaves_at_once(
    broker: BrokerProcess, topic: str, kind: type[Member]
) -> None:
    librdkafka.create(broker.bootstrap, topic, PARTITIONS)

    async def scenario(everyone: Crowd) -> None:
        await everyone.connect()
        await everyone.join()
        await everyone.until(lambda: _is_shared(everyone), SECONDS_MAX)
        leaving = everyone.members[::3]
        await everyone.leave(leaving)
        assert len(everyone.members) == MEMBERS - len(leaving)
        await everyone.until(lambda: _is_shared(everyone), SECONDS_MAX)
        await everyone.close()

    made = crowd(
        *(kind, broker.bootstrap, topic, topic, MEMBERS),
        partitions=PARTITIONS,
        heartbeat_seconds=0.5,
    )
    asyncio.run(scenario(made))


def _is_shared(everyone: Crowd) -> bool:
    assert isinstance(everyone.members[0], ClassicMember) or everyone.doubly_owned() == []
    return everyone.is_stable()
