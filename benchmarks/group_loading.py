"""A broker that starts with many commits in its log: how long until it tells committed offsets."""

import asyncio
import time
from pathlib import Path

from tests.conformance.crowd import Wire

from benchmarks.group_requests import COMMIT_ERROR_AT, commit, write_frames
from benchmarks.peers import Peer
from benchmarks.results import MB
from benchmarks.session import raw
from ottla.model.errors import ErrorCode
from ottla.protocol.messages import find_coordinator, offset_fetch

GROUPS = 200
PARTITIONS = 10  # Of each commit, and so in each batch of the log.
DEPTH = 5
FILL_SECONDS_MAX = 300.0
FETCH_VERSION, FIND_VERSION = 8, 3


def fill(peer: Peer, topic: str, commits: int, directory: Path) -> None:
    """Commit so many offsets, in batches as consumers would."""
    asyncio.run(_until_all_told(peer.bootstrap, 0))
    frames = [commit(_group(number), topic, range(PARTITIONS), None) for number in range(GROUPS)]
    path = write_frames(directory / "commits", frames)
    letters = {"m": "again", "c": GROUPS, "d": DEPTH, "n": commits // PARTITIONS}
    raw(peer, topic, FILL_SECONDS_MAX, F=path, E=COMMIT_ERROR_AT, **letters)


def restart(peer: Peer) -> dict[str, float]:
    peer.stop()
    began = time.perf_counter()
    started = peer.start()
    asyncio.run(_until_all_told(peer.bootstrap, PARTITIONS))
    return {
        "load_s": time.perf_counter() - began,
        "start_s": started,
        "cpu_s": peer.process.cpu_seconds(),
        "resident_mb": peer.process.resident_bytes() / MB,
    }


async def _until_all_told(bootstrap: str, partitions: int) -> None:
    """Every group's offsets, asked for again while they are being loaded."""
    wire = Wire(bootstrap)
    await wire.open()
    await wire.ask(find_coordinator.Request(key=_group(0)), FIND_VERSION)
    waiting = [_group(number) for number in range(GROUPS)]
    while waiting:
        wanted = [offset_fetch.OffsetFetchRequestGroup(name, topics=None) for name in waiting]
        answer = await wire.ask(offset_fetch.Request(groups=wanted), FETCH_VERSION)
        for group in answer.groups:
            if group.error_code == ErrorCode.NONE:
                told = sum(len(topic.partitions) for topic in group.topics)
                assert told == partitions, "what was committed is told"
                waiting.remove(group.group_id)
        if waiting:
            await asyncio.sleep(0.02)
    wire.close()


def _group(number: int) -> str:
    return f"loaded-{number}"
