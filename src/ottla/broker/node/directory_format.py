"""Formatting of log directories as Kafka 4.3's storage tool does it: what makes a disk a node's.

Every directory gets `meta.properties` and `bootstrap.checkpoint`, the first records of the cluster.
With dynamic voters (kraft.version 1) the metadata directory also gets snapshot 0-0, which names
them. Only features that are served are finalized. Damage and other nodes' disks are never touched.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from ottla.broker.controller.metadata_snapshots import write_snapshot
from ottla.env.disk import Disk
from ottla.metadata.image.cluster import BROKER_RESOURCE, METADATA_TOPIC
from ottla.metadata.image.features import (
    KRAFT_VERSION,
    KRAFT_VERSION_MAX,
    METADATA_VERSION,
    METADATA_VERSION_MAX,
    METADATA_VERSIONS,
    SUPPORTED,
    UNSERVED,
    has_transactions,
    is_elr_enabled,
    version_named,
)
from ottla.metadata.image.ids import new_uuid
from ottla.metadata.image.snapshot_file import (
    BOOTSTRAP_NAME,
    SnapshotId,
    read_snapshot,
    snapshot_bytes,
)
from ottla.model.errors import FormatRefused
from ottla.model.types import NodeId, Uuid, WallTime
from ottla.protocol.metadata_records import (
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
)
from ottla.quorum.voters import Address, Voter, Voters
from ottla.storage.checkpoint import replace_file
from ottla.storage.identity import META_PROPERTIES, MetaProperties, is_unused, read_meta


@dataclass(frozen=True, slots=True)
class Format:
    """What is to be formatted, and for whom."""

    cluster_id: str
    node_id: NodeId
    directories: Sequence[str]
    metadata_directory: str
    # The voters that the log shall name; None where they are static or not known yet.
    standalone_at: Mapping[str, Address] | None = None  # This node alone, listening there.
    initial_voters: Voters | None = None
    is_dynamic: bool = True  # kraft.version 1; a node that joins later has it without voters.
    features: Mapping[str, int] = field(default_factory=dict)
    release_version: str | None = None
    ignore_formatted: bool = False


def format_directories(
    disk: Disk, wanted: Format, now: WallTime, random_bytes: Callable[[int], bytes]
) -> list[str]:
    """Format what is empty, and say what was done, a line each. FormatRefused says why not."""
    levels = _feature_levels(wanted)
    todo = _directories_to_format(disk, wanted)
    if not todo:
        return ["All of the log directories are already formatted."]
    name = METADATA_VERSIONS[levels[METADATA_VERSION]]
    done = []
    # The metadata directory comes last: whoever finds it formatted may rely on all the others.
    for directory in sorted(todo, key=lambda path: path == wanted.metadata_directory):
        kind = _format(disk, directory, wanted, levels, now, random_bytes)
        done.append(f"Formatting {kind} {directory} with metadata.version {name}.")
    return done


def bootstrap_records(disk: Disk, metadata_directory: str, *, isr_min: int) -> list[MetadataRecord]:
    """The first records of the cluster, for the node that leads its first epoch.

    `isr_min` is what its settings have as `min.insync.replicas`.
    """
    path = f"{metadata_directory}/{BOOTSTRAP_NAME}"
    if not disk.exists(path):
        return [FeatureLevelRecord(METADATA_VERSION, METADATA_VERSION_MAX)]
    records = read_snapshot(disk.read(path), path).records
    levels = {r.name: r.feature_level for r in records if isinstance(r, FeatureLevelRecord)}
    if is_elr_enabled(levels):
        # With eligible leader replicas the minimum is the cluster's, so it has to be said there.
        records.append(ConfigRecord(BROKER_RESOURCE, "", "min.insync.replicas", str(isr_min)))
    if has_transactions(levels.get(METADATA_VERSION, 0)):
        begin = BeginTransactionRecord(name="Bootstrap records")
        return [begin, *records, EndTransactionRecord()]
    return records


def may_format_unasked(disk: Disk, directories: Sequence[str], voters: Sequence[NodeId]) -> bool:
    """Whether `ottla start` may format by itself: all is empty, and nobody else would miss us.

    An unmounted disk must not become a new cluster, nor a voter one without memory.
    """
    return len(voters) <= 1 and all(is_unused(disk, directory) for directory in directories)


def _feature_levels(wanted: Format) -> dict[str, int]:
    levels = {METADATA_VERSION: METADATA_VERSION_MAX}
    if wanted.release_version is not None:
        level = version_named(wanted.release_version)
        if level is None:
            known = ", ".join(METADATA_VERSIONS.values())
            raise FormatRefused(
                f"Unknown metadata.version '{wanted.release_version}'. "
                f"Supported metadata.version are: {known}"
            )
        levels[METADATA_VERSION] = level
    for name, asked in wanted.features.items():
        _check_feature(name, asked, wanted)
        if name != KRAFT_VERSION and asked:
            levels[name] = asked
    return levels


def _check_feature(name: str, level: int, wanted: Format) -> None:
    if name == METADATA_VERSION:
        raise FormatRefused(
            "Use --release-version instead of --feature metadata.version=X to avoid ambiguity."
        )
    if name == KRAFT_VERSION:
        if level != int(wanted.is_dynamic):
            raise FormatRefused(
                f"kraft.version {level} does not fit: it is 0 where controller.quorum.voters names "
                f"the voters, and {KRAFT_VERSION_MAX} where the metadata log does."
            )
    elif name in SUPPORTED:
        if level > SUPPORTED[name].max_version:
            raise FormatRefused(f"{name} cannot be {level}: Ottla serves 0 and 1.")
    elif name not in UNSERVED:
        supported = ", ".join(sorted([*UNSERVED, *SUPPORTED]))
        raise FormatRefused(f"Unsupported feature: {name}. Supported features are: {supported}")
    elif level:
        raise FormatRefused(
            f"{name} cannot be {level} yet: Ottla does not serve it. Leave it out, or say 0."
        )


def _directories_to_format(disk: Disk, wanted: Format) -> list[str]:
    if wanted.metadata_directory not in wanted.directories:
        raise FormatRefused(
            f"The specified metadata log directory, {wanted.metadata_directory} was not one of "
            f"the given directories: {', '.join(wanted.directories)}"
        )
    todo = []
    for directory in wanted.directories:
        meta = read_meta(disk, directory)
        if meta is None:
            todo.append(directory)
        elif not wanted.ignore_formatted:
            raise FormatRefused(
                f"Log directory {directory} is already formatted. Use --ignore-formatted to "
                "ignore this directory and format the others."
            )
        elif (meta.cluster_id, meta.node_id) != (wanted.cluster_id, wanted.node_id):
            raise FormatRefused(
                f"{directory} is node {meta.node_id}'s of the cluster {meta.cluster_id}, not node "
                f"{wanted.node_id}'s of {wanted.cluster_id}."
            )
    return todo


def _format(
    disk: Disk,
    directory: str,
    wanted: Format,
    levels: Mapping[str, int],
    now: WallTime,
    random_bytes: Callable[[int], bytes],
) -> str:
    """Format one directory, `meta.properties` last: without it, the directory is not formatted."""
    _make_durably(disk, directory)
    voters = wanted.initial_voters
    directory_id = _directory_id(directory, wanted, random_bytes)
    if directory == wanted.metadata_directory and wanted.standalone_at is not None:
        voters = Voters.of([Voter(wanted.node_id, directory_id, wanted.standalone_at)])
    records = [FeatureLevelRecord(name, level) for name, level in levels.items()]
    batches = snapshot_bytes(records, levels[METADATA_VERSION], now=now, last_timestamp=0, epoch=0)
    write_snapshot(disk, f"{directory}/{BOOTSTRAP_NAME}", list(batches))
    kind = "data directory"
    if directory == wanted.metadata_directory:
        kind = "metadata directory"
        if voters is not None:
            kind = "dynamic metadata voter directory"
            _write_voters(disk, directory, voters, now)
    meta = MetaProperties(wanted.cluster_id, wanted.node_id, directory_id)
    replace_file(disk, f"{directory}/{META_PROPERTIES}", meta.encode())
    return kind


def _make_durably(disk: Disk, directory: str) -> None:
    """Make it and its parents so that a power loss does not take the names away again."""
    missing = []
    path = directory.rstrip("/")
    while path and not disk.exists(path):
        missing.append(path)
        path = path.rpartition("/")[0]
    disk.make_directory(directory)
    for path in missing:
        parent = path.rpartition("/")[0] or ("/" if path.startswith("/") else ".")
        with suppress(PermissionError):  # To name a directory one need not be able to list it.
            disk.sync_directory(parent)


def _directory_id(directory: str, wanted: Format, random_bytes: Callable[[int], bytes]) -> Uuid:
    """`--initial-controllers` says the metadata directory's id beforehand."""
    if directory == wanted.metadata_directory and wanted.initial_voters is not None:
        voter = wanted.initial_voters.by_id.get(wanted.node_id)
        if voter is not None:
            return voter.directory_id
    return new_uuid(random_bytes)


def _write_voters(disk: Disk, directory: str, voters: Voters, now: WallTime) -> None:
    log_directory = f"{directory}/{METADATA_TOPIC}-0"
    disk.make_directory(log_directory)
    batches = snapshot_bytes(
        [], METADATA_VERSION_MAX, now=now, last_timestamp=now, epoch=0, voters=voters.to_record()
    )
    write_snapshot(disk, f"{log_directory}/{SnapshotId(0, 0).file_name}", list(batches))
    disk.sync_directory(directory)
