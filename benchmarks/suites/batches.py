"""Batches of 16 KiB and of 1 MiB: megabytes and CPU seconds per GB.

The limit is a loop that only receives, checks the CRC and writes.
"""

from functools import partial

from benchmarks.session import Comparison, Session, raw

ROUND_BYTES = 768 << 20


def run(session: Session) -> None:
    # The last batch fits message.max.bytes, 1,048,588 by default, with its header.
    for name, title, records, in_flight in (
        ("batches-16k", "16 KiB batches, 4 x 5", 16, 5),
        ("batches-1m", "1 MiB batches, 4 x 2", 1030, 2),
    ):
        options = {"c": 4, "d": in_flight, "s": 1000, "r": records, "P": 4, "b": ROUND_BYTES}
        session.compare(
            Comparison(
                name=name,
                title=title,
                metric="mb_per_s",
                measure=partial(raw, **options),
                partitions=4,
                limits=("receiving",),
                written_bytes=ROUND_BYTES,
            )
        )
