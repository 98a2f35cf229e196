"""PySpark on Apache Kafka: our source and sink beside Spark's own connector."""

from benchmarks.peers import Kafka
from benchmarks.session import Session
from benchmarks.suites.spark import compare


def run(session: Session) -> None:
    compare(session, Kafka)
