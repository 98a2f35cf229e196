import pytest

from ottla.metadata.image.cluster import BROKER_RESOURCE
from ottla.metadata.image.features import ELR_VERSION, GROUP_VERSION, METADATA_VERSION
from ottla.model.errors import ErrorCode
from ottla.protocol.messages import broker_registration
from ottla.protocol.messages import update_features as wire
from ottla.protocol.metadata_records import ConfigRecord
from tests.unit.metadata.controller_driver import ControllerDriver


def update(deciding: ControllerDriver, name: str, level: int, kind: int = 1, **fields: bool) -> int:
    asked = wire.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
    response = deciding.ask(wire.Request(feature_updates=[asked], **fields))
    assert [result.feature for result in response.results] == (
        [] if response.error_code else [name]
    )
    return response.error_code


def test_a_feature_is_raised_and_lowered() -> None:
    deciding = ControllerDriver()
    assert update(deciding, GROUP_VERSION, 1) == 0
    assert deciding.image.features[GROUP_VERSION] == 1
    assert update(deciding, GROUP_VERSION, 0) == ErrorCode.INVALID_UPDATE_VERSION
    assert update(deciding, GROUP_VERSION, 0, kind=2) == 0
    assert GROUP_VERSION not in deciding.image.features


def test_validate_only_does_not_change_a_feature() -> None:
    deciding = ControllerDriver()
    assert update(deciding, GROUP_VERSION, 1, validate_only=True) == 0
    assert GROUP_VERSION not in deciding.image.features


@pytest.mark.parametrize(
    ("name", "level", "kind"),
    [
        (GROUP_VERSION, 9, 1),
        (GROUP_VERSION, -1, 1),
        (GROUP_VERSION, 1, 7),
        (GROUP_VERSION, 1, 2),  # No downgrade to a newer one.
        ("nobody.knows", 1, 1),
        ("kraft.version", 1, 1),
        (METADATA_VERSION, 99, 1),
        (METADATA_VERSION, 22, 2),  # It would lose eligible leader replicas.
        (METADATA_VERSION, 22, 3),
    ],
)
def test_invalid_feature_updates_are_refused(name: str, level: int, kind: int) -> None:
    deciding = ControllerDriver()
    before = dict(deciding.image.features)
    assert update(deciding, name, level, kind) == ErrorCode.INVALID_UPDATE_VERSION
    assert deciding.image.features == before


def test_metadata_version_may_be_lowered_without_loss() -> None:
    deciding = ControllerDriver()
    deciding.image.features[METADATA_VERSION] = 29
    assert update(deciding, METADATA_VERSION, 28, kind=2) == 0
    assert deciding.image.metadata_version == 28


def test_all_brokers_must_support_it() -> None:
    deciding = ControllerDriver()
    deciding.register(2, features=[broker_registration.Feature(METADATA_VERSION, 7, 30)])
    assert update(deciding, GROUP_VERSION, 1) == ErrorCode.INVALID_UPDATE_VERSION


def test_two_updates_of_one_feature_are_refused() -> None:
    asked = wire.FeatureUpdateKey(GROUP_VERSION, 1)
    response = ControllerDriver().ask(wire.Request(feature_updates=[asked, asked]))
    assert response.error_code == ErrorCode.INVALID_REQUEST


def test_a_feature_needs_its_metadata_version() -> None:
    deciding = ControllerDriver()
    deciding.image.features[METADATA_VERSION] = 21
    assert update(deciding, GROUP_VERSION, 1) == ErrorCode.INVALID_UPDATE_VERSION


def test_eligible_leader_replicas_fix_the_minimum_for_the_cluster() -> None:
    deciding = ControllerDriver()
    deciding.write(ConfigRecord(BROKER_RESOURCE, "1", "min.insync.replicas", "2"))
    assert update(deciding, ELR_VERSION, 1) == 0
    assert deciding.image.config_of(BROKER_RESOURCE, "") == {"min.insync.replicas": "2"}
    assert deciding.image.config_of(BROKER_RESOURCE, "1") == {}
