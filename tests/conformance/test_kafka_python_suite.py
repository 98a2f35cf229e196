"""kafka-python's own integration tests, as far as `kafka_python_allowed.txt` lists them."""

from collections.abc import Iterator

import pytest

from tests.conformance import kafka_python_suite
from tests.conformance.broker_process import BrokerProcess, Flavour


@pytest.fixture(scope="module")
def broker(flavour: Flavour, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = kafka_python_suite.SETTINGS
    process = BrokerProcess(flavour, tmp_path_factory.mktemp("suite"), settings)
    process.start()
    yield process
    process.stop()


@pytest.fixture(scope="module")
def suite_results(
    broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str | None]:
    report = tmp_path_factory.mktemp("kafka-python") / "report.xml"
    return kafka_python_suite.run(broker.bootstrap, report, kafka_python_suite.allowed())


@pytest.mark.parametrize("name", kafka_python_suite.allowed())
def test_of_kafka_python(name: str, suite_results: dict[str, str | None]) -> None:
    assert name in suite_results, "kafka-python has no such test any more"
    if suite_results[name] is not None:
        pytest.fail(str(suite_results[name]), pytrace=False)
