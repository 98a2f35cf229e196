"""Latency through librdkafka: the round trip of one message, and end to end at 1,000 a second."""

from functools import partial

from benchmarks.session import Comparison, Session, rdkafka

PER_SECOND = 1000


def run(session: Session) -> None:
    session.compare(
        Comparison(
            name="round-trip",
            title="round trip of one message",
            metric="p50_us",
            measure=partial(rdkafka, "roundtrip"),
        )
    )
    session.compare(
        Comparison(
            name="end-to-end",
            title="end to end at 1,000 a second",
            metric="p50_us",
            measure=partial(rdkafka, "endtoend", R=PER_SECOND),
        )
    )
