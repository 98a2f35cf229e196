"""UpdateFeatures through a broker."""

from typing import Any

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.codec import decode, encode
from ottla.protocol.messages import update_features as wire
from tests.unit.broker.serving import World, serving

# ruff: noqa: ANN401  Messages are of any class.


def update(world: World, name: str, level: int, version: int) -> int:
    asked = wire.FeatureUpdateKey(feature=name, max_version_level=level)
    return world.client().ask(wire.Request(feature_updates=[asked]), version).error_code


@pytest.mark.parametrize("version", range(3))
def test_another_node_may_decide_it(version: int) -> None:
    """It is asked, and answers, in the newest version, whatever the client speaks."""
    name = "eligible.leader.replicas.version"
    with serving() as world:
        submit = world.broker.quorum.requests.submit

        async def forward(request: Any, _: object) -> Any:
            asked = decode(wire.Request, encode(request, 2), 2)
            return decode(wire.Response, encode(await submit(asked), 2), 2)

        world.broker.quorum.requests.submit = forward  # type: ignore[method-assign]
        assert update(world, name, 1, version) == 0
        down = wire.FeatureUpdateKey(name, 0)
        if version:
            down.upgrade_type = 2
        else:
            down.allow_downgrade = True
        answer = world.client().ask(wire.Request(feature_updates=[down]), version)
        assert answer.error_code == 0
        assert [result.feature for result in answer.results] == ([name] if version < 2 else [])
        assert name not in world.broker.image.features


@pytest.mark.parametrize("version", range(3))
def test_a_feature_is_raised_for_all(version: int) -> None:
    with serving() as world:
        name = "eligible.leader.replicas.version"
        assert update(world, name, 1, version) == 0
        assert world.broker.image.features[name] == 1
        assert update(world, name, 9, version) == ErrorCode.INVALID_UPDATE_VERSION
