"""UpdateFeatures through a broker."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import update_features as wire
from tests.unit.broker.serving import World, serving


def update(world: World, name: str, level: int, version: int) -> int:
    asked = wire.FeatureUpdateKey(feature=name, max_version_level=level)
    return world.client().ask(wire.Request(feature_updates=[asked]), version).error_code


@pytest.mark.parametrize("version", range(3))
def test_a_feature_is_raised_for_all(version: int) -> None:
    with serving() as world:
        name = "eligible.leader.replicas.version"
        assert update(world, name, 1, version) == 0
        assert world.broker.quorum.finalized_features[name] == 1
        assert update(world, name, 9, version) == ErrorCode.INVALID_UPDATE_VERSION
