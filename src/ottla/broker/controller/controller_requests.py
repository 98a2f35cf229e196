"""Requests to the active controller: decided here while this node is it, sent to it otherwise."""

from typing import Any

from ottla.broker.controller.channel import ControllerChannel
from ottla.broker.controller.image_catch_up import ImageCatchUp
from ottla.broker.controller.metadata_commits import MetadataCommits
from ottla.broker.machines.answer import Answer, refused
from ottla.broker.wire.apis import changes_image
from ottla.env.environment import Environment
from ottla.env.network import Address
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.principal import Origin
from ottla.model.types import Millis
from ottla.protocol.messages import broker_heartbeat
from ottla.quorum.machine import Quorum
from ottla.quorum.roles import Follower


class ControllerRequests:
    def __init__(
        self,
        env: Environment,
        quorum: Quorum,
        commits: MetadataCommits,
        broker_session_timeout_ms: Millis,
    ) -> None:
        self._quorum = quorum
        self._commits = commits
        self.channel = ControllerChannel(env.network, env.clock, self.controller_address)
        # Heartbeats wait behind no other answer, and are sent again while the session lasts.
        self.heartbeats = ControllerChannel(
            env.network,
            env.clock,
            self.controller_address,
            answer_ms_max=broker_session_timeout_ms // 2,
        )
        self._catch_up = ImageCatchUp(self.channel, commits)
        self._is_closed = False

    async def submit(self, request: Any, origin: Origin | None = None) -> Any:  # noqa: ANN401
        """The active controller's response, once committed; raises the Refusal it gives instead.

        A change is in this node's image by then, or two seconds have passed.
        `origin` is the client on whose behalf the request is, if it is not this broker's own.
        """
        while True:
            if self._commits.active is None:
                channel = self.channel
                if isinstance(request, broker_heartbeat.Request):
                    channel = self.heartbeats
                response = await channel.ask(
                    request, lambda: self._commits.active is not None, origin=origin
                )
                if response is not None:
                    if changes_image(request.API_KEY):
                        await self._catch_up.wait()
                    return response
            try:
                return await self.decide(request)
            except Refusal as refusal:
                if refusal.code != ErrorCode.NOT_CONTROLLER or self._is_closed:
                    raise  # Else the next leader is asked.

    def decide(self, request: object) -> Answer[Any]:
        """Like `submit`, but NOT_CONTROLLER where another node decides."""
        if self._commits.active is None:
            return refused(Refusal(ErrorCode.NOT_CONTROLLER))
        return self._commits.active.submit(request)

    async def change_voters(self, request: Any, origin: Origin) -> Any:  # noqa: ANN401
        """The response of the quorum's leader, which changes the voters; Refusal if none leads."""
        while True:
            if self._quorum.is_leader:
                return await self._commits.shell.ask(request)
            response = await self.channel.ask(
                request, lambda: self._quorum.is_leader, origin=origin
            )
            if response is not None:
                return response

    def controller_address(self) -> Address | None:
        """Where the active controller listens; None if it is this node, or not known."""
        role = self._quorum.role
        return Address(*role.address) if isinstance(role, Follower) else None

    def leader_changed(self) -> None:
        self.channel.leader_changed()
        self.heartbeats.leader_changed()

    def close(self) -> None:
        self._is_closed = True
        self.channel.close()
        self.heartbeats.close()
