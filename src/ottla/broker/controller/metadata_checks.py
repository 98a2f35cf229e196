"""Checks of the contents of a metadata log at start: voters, kraft.version, metadata.version."""

import logging

from ottla.metadata.image.features import (
    KRAFT_VERSION_MAX,
    METADATA_VERSION_MAX,
    METADATA_VERSION_MIN,
    METADATA_VERSIONS,
    kept_but_not_served,
)
from ottla.metadata.image.image import ClusterImage
from ottla.model.errors import FormatRefused
from ottla.quorum.machine import Quorum

logger = logging.getLogger(__name__)


def check_voters(quorum: Quorum, directory: str) -> None:
    """Somebody has to lead: this node, or one that it can find."""
    voters, key = quorum.voters, quorum.key
    elsewhere = set(quorum.bootstrap) - set(quorum.endpoints.values())
    if any(node != key.id for node in voters.by_id) or (elsewhere and not voters.has(*key)):
        return
    if not voters.by_id:
        raise FormatRefused(
            f"{directory} was formatted for static voters: set "
            "controller.quorum.voters to this node, as it was when it was formatted."
        )
    if not voters.has(*key):
        raise FormatRefused(
            f"node {key.id} with the disk of {directory} is not "
            f"among the voters of its metadata log ({', '.join(map(str, voters.by_id))})."
        )


def check_kraft_version(version: int, log_dir: str) -> None:
    if version > KRAFT_VERSION_MAX:
        raise FormatRefused(
            f"{log_dir} has kraft.version {version}, "
            f"but this Ottla knows {KRAFT_VERSION_MAX} at most: open it with a newer one."
        )


def check_version(image: ClusterImage, directory: str) -> None:
    version = image.metadata_version
    if version and not METADATA_VERSION_MIN <= version <= METADATA_VERSION_MAX:
        bound = "at most" if version > METADATA_VERSION_MAX else "at least"
        level = METADATA_VERSION_MAX if version > METADATA_VERSION_MAX else METADATA_VERSION_MIN
        raise FormatRefused(
            f"{directory} has metadata.version {version}, but this Ottla opens "
            f"{bound} {level} ({METADATA_VERSIONS[level]})."
        )
    unserved = kept_but_not_served(image.features)
    if unserved:
        named = ", ".join(f"{name} {level}" for name, level in sorted(unserved.items()))
        logger.warning("kept in the metadata log, but not served by this Ottla yet: %s", named)
