"""Whose the log directories of a broker are, and what the controller is told of them."""

from collections.abc import Mapping

from ottla.broker.settings.settings import Settings
from ottla.model.types import Uuid
from ottla.storage.directory import DirectoryRefused, LogDirectory
from ottla.storage.identity import NodeIdentity


class DirectoryIdentities:
    def __init__(self, directories: Mapping[str, LogDirectory], settings: Settings) -> None:
        """`directories` are those that could be opened, by path."""
        self._directories = directories
        self._settings = settings

    def check(self) -> None:
        """Every directory is formatted, for one cluster, and none is a copy of another."""
        known = {d.meta.cluster_id for d in self._directories.values() if d.meta}
        by_id: dict[Uuid, str] = {}
        for directory in self._directories.values():
            meta = directory.meta
            if meta is None or meta.directory_id is None:
                raise DirectoryRefused(
                    f"{directory.path} is not formatted: run ottla format, or ottla up for a "
                    "broker without configuration."
                )
            if len(known) > 1:
                raise DirectoryRefused(
                    f"the directories of log.dirs belong to {len(known)} clusters "
                    f"({', '.join(sorted(known))}): leave out the foreign ones."
                )
            twin = by_id.setdefault(meta.directory_id, directory.path)
            if twin != directory.path:
                raise DirectoryRefused(
                    f"{twin} and {directory.path} have the same directory.id in their "
                    "meta.properties: one is a copy of the other, so leave one out of log.dirs."
                )

    def node(self) -> NodeIdentity:
        meta = self._directories[self._settings.metadata_log_dir].meta
        assert meta is not None, "identities were checked"
        assert meta.directory_id is not None, "identities were checked"
        return NodeIdentity(self._settings.node_id, meta.cluster_id, meta.directory_id)

    def directory_ids(self) -> list[Uuid]:
        return sorted(
            d.meta.directory_id
            for d in self._directories.values()
            if d.meta and d.meta.directory_id and d.path in self._settings.log_dirs
        )

    def offline_ids(self) -> tuple[Uuid, ...]:
        offline = [d for d in self._directories.values() if d.failure is not None]
        return tuple(d.meta.directory_id for d in offline if d.meta and d.meta.directory_id)

    @property
    def previous_broker_epoch(self) -> int:
        """Of the last process, if none of its directories can have lost anything; else -1."""
        epochs = {d.marks.broker_epoch for d in self._directories.values()}
        epoch = epochs.pop() if len(epochs) == 1 else None
        return -1 if epoch is None else epoch
