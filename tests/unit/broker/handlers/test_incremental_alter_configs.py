"""The handler only passes on; what is decided is in tests/unit/metadata/test_config_changes.py."""

import asyncio
from typing import Any

from ottla.broker.handlers.incremental_alter_configs import handle
from ottla.protocol.messages import incremental_alter_configs as wire


class Quorum:
    """Answers whatever is submitted."""

    def __init__(self) -> None:
        self.submitted: list[wire.Request] = []
        self.response = wire.Response()

    async def submit(self, request: wire.Request) -> wire.Response:
        self.submitted.append(request)
        return self.response


class Node:
    def __init__(self) -> None:
        self.quorum = Quorum()


def test_the_controllers_answer_is_the_answer() -> None:
    node, request = Node(), wire.Request(validate_only=True)
    anything: Any = None
    response = asyncio.run(handle(request, anything, node))  # type: ignore[arg-type]
    assert response is node.quorum.response
    assert node.quorum.submitted == [request]
