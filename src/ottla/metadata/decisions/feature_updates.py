"""The decision of UpdateFeatures: raise or lower feature levels that all nodes support.

All updates of a request succeed or none. `kraft.version` belongs to the quorum and is not changed
here. Turning eligible leader replicas on also fixes `min.insync.replicas` for the whole cluster
(KIP-966): brokers with different values would disagree on who may lead. While the feature is off,
leaders commit without regard to ELRs: turning it off or on clears them.
"""

from collections.abc import Iterator
from typing import Any, Final

from ottla.metadata.configs.description import topic_default
from ottla.metadata.decisions.context import DecisionContext, Outcome
from ottla.metadata.decisions.elr_clearing import ALL_TOPICS, MIN_ISR, cleared
from ottla.metadata.decisions.topic_configs import layers
from ottla.metadata.image.cluster import BROKER_RESOURCE, VersionRange
from ottla.metadata.image.features import (
    ELR_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    METADATA_VERSION_MIN,
    METADATA_VERSIONS,
    SUPPORTED,
    metadata_version_needed,
)
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol import metadata_records as records
from ottla.protocol.messages import update_features as wire

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3

# Levels of metadata.version that added fields or records, which a downgrade below would lose.
_CHANGED_METADATA: Final = frozenset({8, 11, 13, 14, 15, 17, 23, 30})


def update_features(context: DecisionContext, request: wire.Request) -> Outcome:
    names = [update.feature for update in request.feature_updates]
    try:
        if len(set(names)) < len(names):
            raise Refusal(ErrorCode.INVALID_REQUEST, "A feature is named twice.")
        written = [
            record for u in request.feature_updates for record in _updated(context, u, request)
        ]
    except Refusal as refusal:
        return Outcome([], _response(names, refusal.code, refusal.message))
    return Outcome([] if request.validate_only else written, _response(names, ErrorCode.NONE, None))


def _response(names: list[str], code: ErrorCode, message: str | None) -> wire.Response:
    # A refusal has no results, whatever the version.
    results = [] if code else [wire.UpdatableFeatureResult(name, 0, None) for name in names]
    return wire.Response(error_code=code, error_message=message, results=results)


def _updated(
    context: DecisionContext, update: wire.FeatureUpdateKey, request: wire.Request
) -> Iterator[Any]:
    name, level = update.feature, update.max_version_level
    image = context.image
    kind = SAFE_DOWNGRADE if update.allow_downgrade else update.upgrade_type
    before = image.features.get(name, 0)
    if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        raise _invalid(update, "The controller does not support the given upgrade type.")
    if level < 0:
        raise _invalid(update, "A feature version cannot be less than 0.")
    _check_supported(context, update)
    if level < before and kind == UPGRADE:
        raise _invalid(
            update,
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade.",
        )
    if level > before and kind != UPGRADE:
        raise _invalid(update, "Can't downgrade to a newer version.")
    if name == METADATA_VERSION:
        _check_metadata_version(update, before, kind)
    else:
        _check_dependency(context, update, request)
    yield records.FeatureLevelRecord(name, level)
    if name == ELR_VERSION and bool(level) != bool(before):
        yield from cleared(image, ALL_TOPICS)
        if level:
            yield from _fixed_min_isr(context)


def _check_supported(context: DecisionContext, update: wire.FeatureUpdateKey) -> None:
    name, image = update.feature, context.image
    if name == KRAFT_VERSION:
        raise _invalid(update, "The level of kraft.version is changed by its quorum.")
    own = f"Local controller {context.settings.node_id}"
    _check_range(update, own, SUPPORTED.get(name), is_known=name in SUPPORTED)
    for broker in image.brokers.values():
        _check_range(update, f"Broker {broker.id}", broker.features.get(name))
    for controller in image.controllers.values():
        if controller.id != context.settings.node_id:
            _check_range(update, f"Controller {controller.id}", controller.features.get(name))


def _check_range(
    update: wire.FeatureUpdateKey,
    who: str,
    levels: VersionRange | None,
    *,
    is_known: bool = True,
) -> None:
    level = update.max_version_level
    low, high = levels or (0, 0)
    if low <= level <= high and is_known:
        return
    if high == 0 or not is_known:
        raise _invalid(update, f"{who} does not support this feature.")
    raise _invalid(update, f"{who} only supports versions {low}-{high}")


def _check_metadata_version(update: wire.FeatureUpdateKey, before: int, kind: int) -> None:
    level = update.max_version_level
    if level not in METADATA_VERSIONS:
        raise _invalid(update, "Unknown metadata.version.")
    assert level >= METADATA_VERSION_MIN, "what we support begins there"
    if level < before and any(level < changed <= before for changed in _CHANGED_METADATA):
        raise _invalid(
            update,
            "Unsafe metadata downgrade is not supported in this version."
            if kind == UNSAFE_DOWNGRADE
            else "Refusing to perform the requested downgrade because it might delete metadata "
            "information.",
        )


def _check_dependency(
    context: DecisionContext, update: wire.FeatureUpdateKey, request: wire.Request
) -> None:
    needed = metadata_version_needed(update.feature, update.max_version_level)
    version = context.image.metadata_version
    for other in request.feature_updates:
        if other.feature == METADATA_VERSION:
            version = other.max_version_level
    if version < needed:
        raise _invalid(
            update,
            f"{update.feature} could not be set to {update.max_version_level} because it depends "
            f"on metadata.version level {needed}",
        )


def _fixed_min_isr(context: DecisionContext) -> Iterator[Any]:
    image = context.image
    cluster = image.config_of(BROKER_RESOURCE, "")
    if MIN_ISR not in cluster:
        value = topic_default(layers(context), MIN_ISR)
        yield records.ConfigRecord(BROKER_RESOURCE, "", MIN_ISR, value)
    for (kind, name), config in sorted(image.configs.items()):
        if kind == BROKER_RESOURCE and name and MIN_ISR in config:
            yield records.ConfigRecord(BROKER_RESOURCE, name, MIN_ISR, None)


def _invalid(update: wire.FeatureUpdateKey, reason: str) -> Refusal:
    return Refusal(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Invalid update version {update.max_version_level} for feature {update.feature}. {reason}",
    )
