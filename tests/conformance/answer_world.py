"""What the steps of the answer script know of the broker that they talk to."""

import time
from typing import Any

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import metadata
from tests.conformance.raw import CLOSED, SILENT, Connection
from tests.conformance.settling import wait_until_seen

NO_SUCH_ID = b"no such topic id"


class World:
    """The connection, the topic ids, and what was answered before."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._connection = Connection(bootstrap)
        self._ids: dict[str, bytes] = {}
        self.answers: dict[tuple[str, int], Any] = {}

    def ask(self, request: Any, version: int) -> Any:  # noqa: ANN401
        answer = self._connection.ask(request, version)
        if answer in (CLOSED, SILENT):
            self._connection.close()
            self._connection = Connection(self._bootstrap)
        return answer

    def ask_until_loaded(self, request: Any, version: int) -> Any:  # noqa: ANN401
        """Apache Kafka has no producer ids to give until its first block of them came."""
        for _ in range(50):
            answer = self.ask(request, version)
            if getattr(answer, "error_code", 0) != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                return answer
            time.sleep(0.1)
        raise AssertionError("still loading")

    def topic_id(self, topic: str) -> bytes:
        if topic not in self._ids:
            self.settle()
        return self._ids.get(topic, NO_SUCH_ID)

    def settle(self) -> None:
        """Wait until the broker itself has seen what its controller confirmed, and leads it."""
        wait_until_seen(self._bootstrap)
        for _ in range(100):
            topics = self.ask(metadata.Request(topics=None), 12).topics
            if all(p.error_code == 0 for topic in topics for p in topic.partitions):
                self._ids = {topic.name: topic.topic_id for topic in topics}
                return
            time.sleep(0.05)
        raise AssertionError("the topics never settled")
