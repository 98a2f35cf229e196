"""Apache Kafka's own Java producer, consumer, admin client and console tools, in one JVM.

The checks are written in Java (`java/src`); here each of them becomes a test of its own.
"""

import pytest

from tests.conformance import java_checks
from tests.conformance.broker_process import BrokerProcess

CLASSES = ("JavaClients", "JavaAdmin", "JavaTools")


@pytest.fixture(scope="module")
def java_results(
    broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory
) -> java_checks.Results:
    return java_checks.run(broker, CLASSES, tmp_path_factory.mktemp("java"))


@pytest.mark.parametrize("name", java_checks.names(CLASSES))
def test_java(name: str, java_results: java_checks.Results) -> None:
    java_checks.expect_passed(name, java_results)
