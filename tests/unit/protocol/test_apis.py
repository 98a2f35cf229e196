"""The API table agrees with the messages and with Kafka's definitions."""

from typing import Any

from ottla.protocol.apis import FLEXIBLE_SINCE, ApiKey, request_class, response_class
from tests.unit.protocol.kafka_definitions import definitions, snake
from tests.unit.protocol.strategies import api_classes


def test_every_module_describes_the_api_whose_name_it_bears() -> None:
    for name, cls in api_classes():
        checked: Any = cls
        key = ApiKey[name.partition("-")[0]]
        assert key == checked.API_KEY
        assert FLEXIBLE_SINCE[key] == checked.FLEXIBLE_SINCE


def test_a_request_and_its_response_have_the_same_versions() -> None:
    for key in {ApiKey[name.partition("-")[0]] for name, _ in api_classes()}:
        request: Any = request_class(key)
        response: Any = response_class(key)
        assert request.VERSIONS == response.VERSIONS


def test_the_keys_and_first_flexible_versions_are_those_of_kafka() -> None:
    theirs = {}
    for kafka in definitions("kafka-clients", "common/message/").values():
        if kafka["type"] == "request" and kafka["validVersions"] != "none":
            since = kafka["flexibleVersions"].removesuffix("+")
            theirs[snake(kafka["name"]).removesuffix("_request").upper()] = (
                kafka["apiKey"],
                None if since == "none" else int(since),
            )
    ours = {
        key.name: (int(key), since if (since := FLEXIBLE_SINCE[key]) < 100 else None)
        for key in ApiKey
    }
    assert ours == theirs
