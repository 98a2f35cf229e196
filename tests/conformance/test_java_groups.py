"""Apache Kafka's own Java consumer in groups, with both protocols, and its tools for groups."""

from collections.abc import Iterator

import pytest

from tests.conformance import java_checks
from tests.conformance.broker_process import BrokerProcess, Flavour

CLASSES = ("JavaGroups", "JavaGroupTools")
QUICK = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.session.timeout.ms": "4000",
    "group.consumer.min.session.timeout.ms": "4000",
    "offsets.topic.num.partitions": "3",
}


@pytest.fixture(scope="module")
def broker(flavour: Flavour, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Its groups notice soon who is gone, and do not wait for members that may come."""
    process = BrokerProcess(flavour, tmp_path_factory.mktemp("groups"), QUICK)
    process.start()
    yield process
    process.stop()


@pytest.fixture(scope="module")
def java_results(
    broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory
) -> java_checks.Results:
    return java_checks.run(broker, CLASSES, tmp_path_factory.mktemp("java"))


@pytest.mark.parametrize("name", java_checks.names(CLASSES))
def test_java_groups(name: str, java_results: java_checks.Results) -> None:
    java_checks.expect_passed(name, java_results)
