"""Base class for resources used by `with`, or by `async with` without blocking the loop."""

import asyncio
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Managed(ABC):
    @abstractmethod
    def start(self) -> Self: ...

    @abstractmethod
    def close(self) -> None:
        """Stop it permanently."""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.close)
