"""Feature levels: the supported ones, and the record fields that a metadata.version allows.

`metadata.version` and `kraft.version` change the meaning of files, so a directory with a higher one
is refused. Every other feature only enables APIs: it is kept in the log, and advertised only if it
is served here.
"""

from collections.abc import Mapping
from typing import Final

from ottla.metadata.image.cluster import VersionRange
from ottla.protocol import metadata_records as records

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
ELR_VERSION: Final = "eligible.leader.replicas.version"
GROUP_VERSION: Final = "group.version"

METADATA_VERSIONS: Final = {
    7: "3.3-IV3", 8: "3.4-IV0", 9: "3.5-IV0", 10: "3.5-IV1", 11: "3.5-IV2", 12: "3.6-IV0",
    13: "3.6-IV1", 14: "3.6-IV2", 15: "3.7-IV0", 16: "3.7-IV1", 17: "3.7-IV2", 18: "3.7-IV3",
    19: "3.7-IV4", 20: "3.8-IV0", 21: "3.9-IV0", 22: "4.0-IV0", 23: "4.0-IV1", 24: "4.0-IV2",
    25: "4.0-IV3", 26: "4.1-IV0", 27: "4.1-IV1", 28: "4.2-IV0", 29: "4.2-IV1", 30: "4.3-IV0",
}  # fmt: skip
METADATA_VERSION_MIN: Final = 7
METADATA_VERSION_MAX: Final = 30
KRAFT_VERSION_MAX: Final = 1

# Supported by our registrations and advertised by ApiVersions.
SUPPORTED: Final = {
    METADATA_VERSION: VersionRange(METADATA_VERSION_MIN, METADATA_VERSION_MAX),
    KRAFT_VERSION: VersionRange(0, KRAFT_VERSION_MAX),
    ELR_VERSION: VersionRange(0, 1),
    GROUP_VERSION: VersionRange(0, 1),
}

# Further features of Kafka 4.3, with their highest level, so that formatting can tell an unserved
# feature from an unknown one.
UNSERVED: Final = {
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}

_NO_EPOCH_FOR_SHRINKING_SINCE: Final = 12
_DIRECTORIES_SINCE: Final = 17
_TRANSACTIONS_SINCE: Final = 13
_CONTROLLER_REGISTRATION_SINCE: Final = 15
_ELR_SINCE: Final = 23
_CORDONED_SINCE: Final = 30
_GROUP_VERSION_SINCE: Final = 22


def is_leader_epoch_raised_by_shrinking(metadata_version: int) -> bool:
    """Brokers of old releases notice a shrunk ISR only by a new leader epoch."""
    return metadata_version < _NO_EPOCH_FOR_SHRINKING_SINCE


def has_directories(metadata_version: int) -> bool:
    return metadata_version >= _DIRECTORIES_SINCE


def has_transactions(metadata_version: int) -> bool:
    return metadata_version >= _TRANSACTIONS_SINCE


def has_controller_registration(metadata_version: int) -> bool:
    return metadata_version >= _CONTROLLER_REGISTRATION_SINCE


def has_cordoned_directories(metadata_version: int) -> bool:
    return metadata_version >= _CORDONED_SINCE


def is_elr_enabled(features: Mapping[str, int]) -> bool:
    return features.get(ELR_VERSION, 0) > 0 and features.get(METADATA_VERSION, 0) >= _ELR_SINCE


def metadata_version_needed(feature: str, level: int) -> int:
    """The lowest metadata.version with which a feature may have this level."""
    if level == 0:
        return 0
    return {ELR_VERSION: _ELR_SINCE, GROUP_VERSION: _GROUP_VERSION_SINCE}.get(feature, 0)


def advertised(features: Mapping[str, int]) -> dict[str, int]:
    """The finalized features that are served, and so advertised to clients."""
    return {name: level for name, level in features.items() if name in SUPPORTED}


def kept_but_not_served(features: Mapping[str, int]) -> dict[str, int]:
    return {name: level for name, level in features.items() if name not in SUPPORTED}


def raised_alone(features: Mapping[str, int]) -> list[records.MetadataRecord]:
    """Features that a new single node finalizes at its first start, because it serves them."""
    if GROUP_VERSION in features or features.get(METADATA_VERSION, 0) < _GROUP_VERSION_SINCE:
        return []
    return [records.FeatureLevelRecord(GROUP_VERSION, SUPPORTED[GROUP_VERSION].max_version)]


def version_named(name: str) -> int | None:
    """The level of "4.3-IV0", or of "4.3", the last level of that release."""
    found = None
    for level, version in METADATA_VERSIONS.items():
        if (
            version == name
            or version.split("-")[0] == name
            or name.startswith(version.split("-")[0] + ".")
        ):
            found = level
    return found


def record_version(record: records.MetadataRecord, metadata_version: int) -> int:
    """The version in which a record is written: readable by every node of the cluster."""
    kind = type(record)
    if kind is records.PartitionRecord or kind is records.PartitionChangeRecord:
        if metadata_version >= _ELR_SINCE:
            return 2
        return 1 if has_directories(metadata_version) else 0
    if kind is records.RegisterBrokerRecord:
        if metadata_version >= _CORDONED_SINCE:
            return 4
        if has_directories(metadata_version):
            return 3
        return 2 if metadata_version >= 8 else 1
    if isinstance(record, records.BrokerRegistrationChangeRecord):
        return _broker_change_version(record)
    return 0


def _broker_change_version(record: records.BrokerRegistrationChangeRecord) -> int:
    if record.cordoned_log_dirs is not None:
        return 3
    if record.log_dirs:
        return 2
    return 1 if record.in_controlled_shutdown else 0
