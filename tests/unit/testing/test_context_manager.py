import asyncio
import threading
from typing import Self

import pytest

from ottla.testing.context_manager import Managed


class Noted(Managed):
    def __init__(self) -> None:
        self.events: list[tuple[str, bool]] = []

    def start(self) -> Self:
        self.events.append(("start", threading.current_thread() is threading.main_thread()))
        return self

    def close(self) -> None:
        self.events.append(("close", threading.current_thread() is threading.main_thread()))


def test_with_starts_and_closes_also_after_an_exception() -> None:
    noted = Noted()
    with pytest.raises(ZeroDivisionError), noted:
        raise ZeroDivisionError
    assert noted.events == [("start", True), ("close", True)]


def test_async_with_does_not_block_the_loop() -> None:
    async def use(noted: Noted) -> None:
        async with noted as started:
            assert started is noted

    noted = Noted()
    asyncio.run(use(noted))
    assert noted.events == [("start", False), ("close", False)]
