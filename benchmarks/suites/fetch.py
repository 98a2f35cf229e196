"""Fetches: catching up through stored data, and waiting at the tail for what is produced.

The limit of catching up is `sendfile` in a loop, without any lookup. At the tail one producer is
paced, and the time is taken from its sending to each consumer's receiving.
"""

from functools import partial

from benchmarks.limit_servers import FILE_BATCH_RECORDS, FILE_VALUE_BYTES
from benchmarks.session import Comparison, Session, Target, raw

STORED_BYTES = 256 << 20
FILL_SECONDS_MAX = 30
TAIL_PER_SECOND = 500


def run(session: Session) -> None:
    for name, title, connections, response in (
        ("catch-up-1m", "catch-up, 1 MiB responses", 1, 1 << 20),
        ("catch-up-1m-c8", "catch-up, 1 MiB, 8 connections", 8, 1 << 20),
        ("catch-up-64k", "catch-up, 64 KiB responses", 1, 64 << 10),
    ):
        session.compare(
            Comparison(
                name=name,
                title=title,
                metric="mb_per_s",
                measure=partial(raw, m="fetch", c=connections, M=response),
                limits=("sending",) if response == 1 << 20 else (),
                fill=fill,
            )
        )
    for consumers in (1, 16):
        session.compare(
            Comparison(
                name=f"tail-c{consumers}",
                title=f"tail, {TAIL_PER_SECOND}/s to {consumers}",
                metric="p50_us",
                measure=partial(raw, m="tail", c=consumers, R=TAIL_PER_SECOND),
            )
        )


def fill(target: Target, topic: str) -> None:
    """What is stored is the same as in the file of the limit."""
    shape = {"s": FILE_VALUE_BYTES, "r": FILE_BATCH_RECORDS, "b": STORED_BYTES}
    raw(target, topic, FILL_SECONDS_MAX, c=1, d=5, **shape)
