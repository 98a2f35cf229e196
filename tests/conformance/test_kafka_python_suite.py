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
    reports = tmp_path_factory.mktemp("kafka-python")
    results = kafka_python_suite.run(
        broker.bootstrap, reports / "report.xml", kafka_python_suite.allowed()
    )
    # On a busy machine a consumer of kafka-python at times waits out a request timeout of 30 s,
    # as long as a test may take: those that did are run once more.
    late = [name for name, failure in results.items() if failure and "Timeout (>" in failure]
    if late:
        results |= kafka_python_suite.run(broker.bootstrap, reports / "again.xml", late)
    return results


@pytest.mark.parametrize("name", kafka_python_suite.allowed())
def test_of_kafka_python(name: str, suite_results: dict[str, str | None]) -> None:
    assert name in suite_results, "kafka-python has no such test any more"
    if suite_results[name] is not None:
        pytest.fail(str(suite_results[name]), pytrace=False)
