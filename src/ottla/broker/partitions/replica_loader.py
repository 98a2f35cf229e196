"""Opens the logs of all log directories at a start, and compares them with the cluster's metadata.

Logs of unknown topics become strays, replicas whose directory was removed are reported as missing,
and of two copies of a replica one is kept.
"""

import logging
from functools import partial

from ottla.broker.partitions.log_directories import LogDirectories
from ottla.broker.partitions.recovery_progress import RecoveryProgress
from ottla.broker.settings.settings import Settings
from ottla.broker.settings.topic_config import TopicConfig
from ottla.env.environment import Environment
from ottla.env.errnos import SHORT
from ottla.metadata.image.cluster import TOPIC_RESOURCE
from ottla.metadata.image.image import ClusterImage
from ottla.model.types import TopicPartition
from ottla.storage.config import LogConfig
from ottla.storage.directory import LogDirectory
from ottla.storage.directory_loader import load_logs
from ottla.storage.hosted_replicas import Replica

logger = logging.getLogger(__name__)


class ReplicaLoader:
    def __init__(self, settings: Settings, env: Environment, directories: LogDirectories) -> None:
        self._settings = settings
        self._env = env
        self._directories = directories

    def load(self, image: ClusterImage) -> None:
        """Open every partition's log; those of topics that the cluster does not know are strays."""
        now = self._env.clock.wall()

        def config_of(topic: str) -> LogConfig:
            overrides = image.config_of(TOPIC_RESOURCE, topic)
            return TopicConfig.resolve(self._settings, overrides).log_config(self._settings)

        for directory in self._directories.online():
            progress = RecoveryProgress(self._env.clock)
            try:
                load_logs(directory, config_of, now, progress)
                self._set_strays(directory, image)
            except OSError as error:
                if error.errno in SHORT:
                    raise  # No start is better than one that gives these replicas up.
                self._directories.fail(directory, error)
            for notice in directory.notices:
                logger.warning("%s", notice)
            for name, damage in directory.damaged.items():
                logger.error("%s is offline: %s", name, damage)
        self._find_missing(image)
        self._set_twins_aside(image)

    def _find_missing(self, image: ClusterImage) -> None:
        """Replicas whose directories were removed while no process was here are not new ones."""
        for directory in self._directories.online():
            ours: set[Replica] = set()
            for topic_id, index in sorted(directory.hosted):
                topic = image.topics_by_id.get(topic_id)
                state = topic.partitions.get(index) if topic else None
                if topic is None or state is None or self._settings.node_id not in state.replicas:
                    continue
                ours.add((topic_id, index))
                name = TopicPartition(topic.name, index)
                if self._directories.is_absent(name) and not directory.marks.power_was_lost:
                    directory.set_missing(name, topic_id)
                    logger.error("%s is offline: %s", name, directory.damaged[name])
            self._directories.attempt(directory, partial(directory.keep_hosted, ours))

    def _set_twins_aside(self, image: ClusterImage) -> None:
        """A directory is back from which replicas had moved on: the cluster knows where they are.

        What it does not know yet was just begun in the other directory, so the longer log is right.
        """
        held: dict[TopicPartition, list[LogDirectory]] = {}
        for directory in self._directories.online():
            for name in directory.logs:
                held.setdefault(name, []).append(directory)
        for name, directories in held.items():
            if len(directories) < 2:
                continue
            state = image.topics_by_name[name.topic].partitions[name.partition]
            wanted = state.directory_of(self._settings.node_id)
            kept = max(
                directories,
                key=lambda d: (
                    d.meta is not None and d.meta.directory_id == wanted,
                    d.logs[name].end_offset,
                ),
            )
            for directory in directories:
                if directory is not kept:
                    logger.warning("%s lies in %s now", name, kept.path)
                    self._directories.attempt(directory, partial(self._set_stray, directory, name))

    def _set_stray(self, directory: LogDirectory, name: TopicPartition) -> None:
        directory.set_stray(name, self._env.random.randbytes(16))

    def _set_strays(self, directory: LogDirectory, image: ClusterImage) -> None:
        for name in list(directory.logs) + list(directory.damaged):
            topic = image.topics_by_name.get(name.topic)
            topic_id = directory.topic_ids.get(name)
            is_known = topic is not None and name.partition in topic.partitions
            if not is_known or (topic and topic_id not in (None, topic.id)):
                self._set_stray(directory, name)
            elif topic:
                directory.set_topic_id(name, topic.id)
