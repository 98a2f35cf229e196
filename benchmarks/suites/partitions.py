"""Growth: small produces to 1 and to 1,000 partitions, 32 connections with 5 in flight each.

Every request goes to the next partition, so at 1,000 nothing that is remembered of the last one
helps, and no two batches of a turn share a write. `apart` keeps each connection to a partition of
its own while 1,000 exist, which is how most clients spread their load.
"""

from functools import partial

from benchmarks.session import Comparison, Session, raw

MANY = 1000


def run(session: Session) -> None:
    for name, title, partitions, used in (
        ("partitions-1", "1 partition", 1, 1),
        ("partitions-32", "32 of 1,000 partitions", MANY, 32),
        ("partitions-1000", "1,000 partitions in turn", MANY, MANY),
    ):
        session.compare(
            Comparison(
                name=name,
                title=title,
                metric="requests_per_s",
                measure=partial(raw, c=32, d=5, P=used),
                partitions=partitions,
            )
        )
