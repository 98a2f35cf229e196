"""Writes the checkpoints of log directories in a worker, one at a time for each directory.

Whoever needs a checkpoint on disk before going on waits for one that was begun after asking; all
that ask while one is written share the next. Only here are checkpoints written while the broker
runs: an older draft never replaces a newer one.
"""

import asyncio
from collections.abc import Callable, Mapping

from ottla.broker.partitions.log_sync import Spawn
from ottla.env.workers import Workers
from ottla.model.errors import Refusal
from ottla.model.types import Offset, TopicPartition
from ottla.storage.checkpoints import Draft
from ottla.storage.directory import LogDirectory

Marks = Mapping[TopicPartition, Offset]
Written = asyncio.Future[Refusal | None]


class CheckpointWriter:
    def __init__(
        self,
        workers: Workers,
        spawn: Spawn,
        marks: Callable[[LogDirectory], Marks],
        failed: Callable[[LogDirectory, OSError], Refusal],
    ) -> None:
        """`marks` are the high watermarks of a directory's logs; `failed` hears of an OSError."""
        self._workers = workers
        self._spawn = spawn
        self._marks = marks
        self._failed = failed
        self._asked: dict[LogDirectory, list[Written]] = {}
        self._noted: set[LogDirectory] = set()
        self._busy: set[LogDirectory] = set()
        self._writing: set[asyncio.Future[None]] = set()

    async def write(self, directory: LogDirectory) -> None:
        """Return once a checkpoint of what is so now is on disk; Refusal if it cannot be."""
        written: Written = asyncio.get_running_loop().create_future()
        self.soon(directory)
        self._asked[directory].append(written)
        refusal = await written
        if refusal is not None:
            raise refusal

    def soon(self, directory: LogDirectory) -> None:
        """Begin one, or have the one under way followed by another."""
        self._asked.setdefault(directory, [])
        self._begin(directory)

    def note_high_watermarks(self, directory: LogDirectory) -> None:
        """Write the high watermarks soon, not synced: only a kill is to be survived."""
        self._noted.add(directory)
        self._begin(directory)

    async def wait_idle(self) -> None:
        """Wait for writes that began; those who asked for them may have been cancelled."""
        await asyncio.gather(*self._writing, return_exceptions=True)

    def _begin(self, directory: LogDirectory) -> None:
        if directory not in self._busy:
            self._busy.add(directory)
            self._spawn(self._run(directory))

    async def _run(self, directory: LogDirectory) -> None:
        try:
            while directory in self._asked or directory in self._noted:
                self._noted.discard(directory)
                waiting = self._asked.pop(directory, None)
                refusal = await self._write(directory, is_whole=waiting is not None)
                for written in waiting or ():
                    if not written.done():  # Who waited may have been cancelled.
                        written.set_result(refusal)
        finally:
            self._busy.discard(directory)

    async def _write(self, directory: LogDirectory, *, is_whole: bool) -> Refusal | None:
        if directory.failure is not None:
            return directory.failed(directory.failure)
        marks = self._marks(directory)
        draft = (
            directory.draft_checkpoint(marks)
            if is_whole
            else directory.checkpoints.draft_high_watermarks(marks)
        )
        if draft is None:
            return None
        try:
            await self._write_draft(draft)
        except OSError as error:
            return self._failed(directory, error)
        directory.checkpoints.written(draft)
        return None

    async def _write_draft(self, draft: Draft) -> None:
        """A worker that began goes on though its task is cancelled, so others can wait for it."""
        writing = asyncio.ensure_future(self._workers.run(draft.write))
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)
        await asyncio.shield(writing)
