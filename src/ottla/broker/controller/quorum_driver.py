"""The life cycle of this node's part in the quorum: opens the metadata log, joins, stops, closes.

`MetadataCommits` writes decisions and publishes the committed image, `ControllerRequests` brings
requests to the active controller, `QuorumShell` performs what the pure machine wants done.
"""

import asyncio
import contextlib
import logging
from collections.abc import Sequence

from ottla.broker.controller.controller_requests import ControllerRequests
from ottla.broker.controller.metadata_checks import check_version, check_voters
from ottla.broker.controller.metadata_commits import MetadataCommits
from ottla.broker.controller.metadata_log import MetadataLog
from ottla.broker.controller.metadata_log_settings import MetadataLogSettings
from ottla.broker.controller.quorum_settings import QuorumSettings, new_quorum
from ottla.env.environment import Environment
from ottla.metadata.decisions.context import ControllerSettings
from ottla.metadata.image.image import ClusterImage
from ottla.model.types import Millis, Monotonic
from ottla.protocol.metadata_records import MetadataRecord
from ottla.quorum.freshness import known_at
from ottla.storage.identity import NodeIdentity

logger = logging.getLogger(__name__)

# A search for the active controller that lasts longer is reported, and again at this interval.
SEARCH_SECONDS = 3.0
SEARCH_REPORT_SECONDS = 30.0


class QuorumDriver:
    def __init__(
        self,
        env: Environment,
        identity: NodeIdentity,
        controller_settings: ControllerSettings,
        log_settings: MetadataLogSettings,
        bootstrap: Sequence[MetadataRecord] = (),
        settings: QuorumSettings | None = None,
    ) -> None:
        """`bootstrap` are the first records of a new cluster, as formatting left them."""
        self.identity = identity
        self.log = MetadataLog(env, log_settings)
        self.quorum = new_quorum(settings or QuorumSettings(), identity, self.log, env.random)
        self.commits = MetadataCommits(
            env, self.log, self.quorum, controller_settings, bootstrap, self._acted
        )
        self.shell = self.commits.shell
        self.requests = ControllerRequests(
            env, self.quorum, self.commits, controller_settings.broker_session_timeout_ms
        )
        self._env = env
        self._progress = asyncio.Event()
        self._report: asyncio.TimerHandle

    def open(self) -> None:
        """Read the newest snapshot and open the log. Blocks; Damaged says what is wrong.

        What a single voter has on disk is committed; others have to ask what is.
        """
        self.commits.committed_image.load()
        if self.is_alone:
            self.commits.committed_image.advance(self.log.end_offset)
        check_version(self.image, self.log.directory)
        check_voters(self.quorum, self.log.directory)
        self.image.take_delta()

    async def join(self) -> None:
        """Take part in the quorum, until the image is as new as that of the leader.

        A single voter leads at once, and settles what the log left open.
        """
        self.shell.loop = asyncio.get_running_loop()
        self.shell.happened(self.quorum.started)
        if not self.is_alone:
            logger.info("looking for the active controller")
        self._report = self.shell.loop.call_later(SEARCH_SECONDS, self._report_search)
        try:
            while True:
                self._progress.clear()
                await self.commits.settle()
                if self.is_ready:
                    return
                await self._progress.wait()
        finally:
            self._report.cancel()

    def _report_search(self) -> None:
        tried = "; ".join(self.shell.peers.outcomes()) or "there is no address to ask"
        logger.warning("no active controller found yet: %s", tried)
        loop = asyncio.get_running_loop()
        self._report = loop.call_later(SEARCH_REPORT_SECONDS, self._report_search)

    @property
    def image(self) -> ClusterImage:
        """The cluster, as far as it is committed."""
        return self.commits.committed_image.image

    @property
    def is_ready(self) -> bool:
        """Whether this node has known the cluster as its leader does."""
        return self.known_at is not None and bool(self.image.metadata_version)

    @property
    def known_at(self) -> Monotonic | None:
        """The image has all that was committed by then; None where that cannot be told."""
        return known_at(self.quorum, self._env.clock.monotonic())

    @property
    def is_alone(self) -> bool:
        """Whether this node is the only voter: what it has on disk is committed."""
        return self.quorum.is_alone

    @property
    def is_leader(self) -> bool:
        return self.commits.active is not None

    @property
    def voter_count(self) -> int:
        return len(self.quorum.voters.by_id)

    @property
    def kraft_version(self) -> int:
        return self.quorum.kraft_version

    @property
    def leader_epoch(self) -> int:
        return self.quorum.state.epoch

    async def hand_over(self, timeout_ms: Millis) -> None:
        """Before a clean stop: another voter should lead soon."""
        self.shell.happened(self.quorum.resign)  # Nothing happens where it does not lead.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1000):
                await self.shell.settle()
                while not self.quorum.has_told_all:
                    self._progress.clear()
                    await self._progress.wait()

    def close(self) -> None:
        """Call after `settle`, when no request is under way any more."""
        self._release()
        self.log.close()

    async def abandon(self) -> None:
        """Leave the files as they are, once no worker has them any more."""
        self._release()
        await self.commits.wait_written()
        self.log.abandon()

    def _release(self) -> None:
        self.shell.close()
        self.requests.close()
        self.commits.drop()

    def _acted(self) -> None:
        self.requests.leader_changed()
        self._progress.set()
