"""Every served API in every version answers what Apache Kafka 4.3.1 answered when it was recorded.

`raw.MASKED` lists the fields that may differ; `DIFFERS` the answers that differ by decision.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance import answers
from tests.conformance.broker_process import BrokerProcess, Flavour

RECORDED = answers.recorded()

# By the name of the step, without the version.
DIFFERS: dict[str, str] = {
    "Produce an unknown codec": "Kafka's handler throws and so answers UNKNOWN_SERVER_ERROR",
}


@pytest.fixture(scope="module")
def answered(flavour: Flavour, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict]:
    broker = BrokerProcess(flavour, tmp_path_factory.mktemp("answers")).start()
    try:
        yield answers.run(broker)
    finally:
        broker.kill()


@pytest.mark.parametrize("name", RECORDED)
def test_the_answer_is_apache_kafkas(name: str, answered: dict[str, Any], flavour: Flavour) -> None:
    step = name.rpartition(" v")[0] or name
    if flavour.name == "ottla" and step in DIFFERS:
        assert answered[name] != RECORDED[name], "it does not differ any more"
        return
    if step.startswith("ApiVersions"):
        assert_advertised(answered[name], RECORDED[name])
    else:
        assert answered[name] == RECORDED[name]


def assert_advertised(ours: Any, theirs: Any) -> None:  # noqa: ANN401
    """What we advertise is a part of what Kafka does, version by version."""
    assert type(ours) is type(theirs)
    if isinstance(ours, str):
        assert ours == theirs
        return
    assert ours["error_code"] == theirs["error_code"]
    for part in ("api_keys", "supported_features", "finalized_features"):
        strange = [one for one in ours[part] if one not in theirs[part]]
        assert strange == [], f"{part} that Apache Kafka does not have"
