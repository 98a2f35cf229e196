"""Produce and consume through librdkafka, as most users' clients do: 100 B and 1 KiB records."""

from functools import partial

from benchmarks.session import Comparison, Session, Target, rdkafka

PARTITIONS = 4
ROUND_SECONDS_MAX = 30  # A round ends by its number of records.


def run(session: Session) -> None:
    scale = min(1.0, session.options.seconds)
    for size, label, count in ((100, "100 B", 2_000_000), (1024, "1 KiB", 400_000)):
        records = int(count * scale)
        options = {"s": size, "n": records, "P": PARTITIONS}
        session.compare(
            Comparison(
                name=f"librdkafka-produce-{size}",
                title=f"librdkafka produce {label}",
                metric="records_per_s",
                measure=partial(_load, "produce", options),
                partitions=PARTITIONS,
                written_bytes=records * size,
            )
        )
        session.compare(
            Comparison(
                name=f"librdkafka-consume-{size}",
                title=f"librdkafka consume {label}",
                metric="records_per_s",
                measure=partial(_load, "consume", options),
                partitions=PARTITIONS,
                fill=partial(_fill, options),
            )
        )


def _load(
    what: str, options: dict[str, object], target: Target, topic: str, _seconds: float
) -> dict[str, float]:
    return rdkafka(what, target, topic, ROUND_SECONDS_MAX, **options)


def _fill(options: dict[str, object], target: Target, topic: str) -> None:
    _load("produce", options, target, topic, 0)
