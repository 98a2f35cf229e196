"""ApiVersions: the first thing that a client asks, in whatever version it knows."""

import pytest

from ottla.broker.wire.apis import Listener, served_on
from ottla.model.errors import ErrorCode
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import decode
from ottla.protocol.messages import api_versions as wire
from tests.unit.broker.serving import serving


def ask(name: str = "test-client", version: str = "1.0.2") -> wire.Request:
    return wire.Request(client_software_name=name, client_software_version=version)


@pytest.mark.parametrize("version", range(5))
def test_everything_served_is_listed_in_every_version(version: int) -> None:
    with serving() as world:
        answer = world.client().ask(ask() if version >= 3 else wire.Request(), version)
        assert answer.error_code == 0
        listed = {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}
        assert listed == {
            key: (api.versions[0], api.versions[-1])
            for key, api in served_on(Listener.BROKER).items()
        }
        assert listed[ApiKey.PRODUCE] == (0, 13)


@pytest.mark.parametrize("version", [3, 4])
def test_features_are_told(version: int) -> None:
    with serving() as world:
        answer = world.client().ask(ask(), version)
        supported = {feature.name: feature for feature in answer.supported_features}
        assert supported["metadata.version"].max_version >= 7
        # A range that begins at 0 is nothing that older clients could read.
        assert ("kraft.version" in supported) == (version >= 4)
        finalized = {f.name: f.max_version_level for f in answer.finalized_features}
        assert finalized["metadata.version"] == world.broker.image.features["metadata.version"]
        assert answer.finalized_features_epoch == world.broker.image.offset


@pytest.mark.parametrize("version", [5, 100, 32767, -1])
def test_a_version_that_nobody_knows_gets_the_range_in_version_0(version: int) -> None:
    with serving() as world:
        client = world.client()
        header = b"\x00\x12" + version.to_bytes(2, "big", signed=True) + b"\x00\x00\x00\x07"
        client.feed(header + b"\xff\xff\x00")
        [frame] = client.frames()
        assert frame[:4] == b"\x00\x00\x00\x07"
        answer = decode(wire.Response, frame[4:], 0)
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert [(k.api_key, k.min_version, k.max_version) for k in answer.api_keys] == [(18, 0, 4)]
        assert client.channel.is_open


@pytest.mark.parametrize("name", ["", " ", "-a", "a-", "a b", "a_b", "é", "a\n"])
def test_software_names_that_could_harm_a_log_are_refused(name: str) -> None:
    with serving() as world:
        client = world.client()
        for request in (ask(name=name), ask(version=name)):
            answer = client.ask(request, 3)
            assert (answer.error_code, answer.api_keys) == (ErrorCode.INVALID_REQUEST, [])
        assert client.channel.is_open
