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
    "Produce an unknown codec": "Kafka's handler throws, and so it answers UNKNOWN_SERVER_ERROR.",
    "Produce a batch and a half": "Kafka drops the half in silence; we say that it is there.",
    "DescribeConfigs of a kind that does not exist": "Kafka refuses the good resources with it.",
    "IncrementalAlterConfigs by an operation that does not exist": "Kafka's handler throws.",
}


@pytest.fixture(scope="module")
def answered(flavour: Flavour, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict]:
    settings = {"group.initial.rebalance.delay.ms": "0"}
    broker = BrokerProcess(flavour, tmp_path_factory.mktemp("answers"), settings).start()
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
        assert leveled(answered[name]) == leveled(RECORDED[name])


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


def leveled(value: Any) -> Any:  # noqa: ANN401
    """Without what differs by decision wherever it appears, or says nothing."""
    if isinstance(value, list):
        # Kafka formats with eligible leader replicas, which turn this default into an override;
        # we finalize that feature once it is served.
        return [leveled(one) for one in value if not is_named(one, "min.insync.replicas")]
    if not isinstance(value, dict):
        return value
    kept = {key: leveled(one) for key, one in value.items()}
    kept.pop("error_message", None)  # We give reasons where Kafka has none.
    if kept.get("error_code"):
        # Of a refusal these say nothing; Kafka fills them in or not by where it was refused.
        for field in ("log_start_offset", "aborted_transactions"):
            kept.pop(field, None)
    return kept


def is_named(value: Any, name: str) -> bool:  # noqa: ANN401
    return isinstance(value, dict) and value.get("name") == name
