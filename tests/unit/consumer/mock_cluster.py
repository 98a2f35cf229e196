"""librdkafka's mock broker: real bytes over real sockets, in this process."""

from confluent_kafka import Producer


class MockCluster:
    def __init__(self) -> None:
        self._owner = Producer({"test.mock.num.brokers": 1, "linger.ms": 0})
        (node,) = self._owner.list_topics(timeout=10).brokers.values()
        self.bootstrap = f"{node.host}:{node.port}"

    def write(
        self,
        topic: str,
        *values: bytes,
        partition: int = 0,
        headers: list[tuple[str, bytes]] | None = None,
    ) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 0})
        for value in values:
            producer.produce(
                topic, value, key=b"k-" + value[:9], partition=partition, headers=headers
            )
        assert producer.flush(10) == 0
