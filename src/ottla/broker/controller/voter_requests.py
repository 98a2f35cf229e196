"""Changes of the voters that were asked of a broker: the quorum's leader makes them."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.broker.controller.quorum_driver import QuorumDriver


async def changed_by_leader(request: Any, driver: "QuorumDriver") -> Any:  # noqa: ANN401
    """The leader's response, from beside us or from elsewhere; a Refusal if nobody leads."""
    while True:
        if driver.quorum.is_leader:
            return await driver.shell.ask(request)
        response = await driver.channel.ask(request, lambda: driver.quorum.is_leader)
        if response is not None:
            return response
