"""A proxy that loses answers: requests still reach the broker, then the connection is cut.

What a producer sent in that moment was appended, but it never hears so and has to send it again.
"""

import asyncio
import contextlib
import random
import threading

LOSING_SECONDS = 0.05


class LossyProxy:
    """Listens on `port` and forwards to `target_port`, from a thread of its own."""

    def __init__(self, port: int, target_port: int, chance: random.Random) -> None:
        self._port, self._target_port, self._chance = port, target_port, chance
        self._is_losing = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._stopping = threading.Event()
        self._is_calm = threading.Event()
        self.cuts = 0

    def start(self) -> "LossyProxy":
        self._thread.start()
        return self

    def calm(self) -> None:
        """Lose nothing more: where a machine is slow, nobody gets an answer between two cuts."""
        self._is_calm.set()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    async def _run(self) -> None:
        server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        while not self._stopping.is_set():
            await self._lose_once()
        server.close()
        self._cut()
        await asyncio.sleep(0.1)  # Until every task has seen that its connection is gone.

    async def _lose_once(self) -> None:
        await asyncio.sleep(self._chance.uniform(0.1, 0.6))
        if self._is_calm.is_set():
            return
        self._is_losing = True
        await asyncio.sleep(LOSING_SECONDS)
        self.cuts += len(self._writers) > 0
        self._cut()
        self._is_losing = False

    def _cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        await asyncio.gather(
            self._forward(reader, far_writer, is_answer=False),
            self._forward(far_reader, writer, is_answer=True),
        )
        self._writers -= {writer, far_writer}

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_answer: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                if not (is_answer and self._is_losing):
                    writer.write(data)
                    await writer.drain()
        writer.transport.abort()
