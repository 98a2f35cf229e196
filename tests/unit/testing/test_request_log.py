"""Requests of clients are kept as they were sent, however their bytes arrive."""

import confluent_kafka
import pytest

from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import encode
from ottla.protocol.header import RequestHeader, encode_request_header
from ottla.protocol.messages import api_versions
from ottla.testing import Broker, Cluster
from ottla.testing import request_log as tested
from ottla.testing.request_log import RequestLog, TappedPeer, decode_sent


class Sink:
    """A peer that only receives."""

    def __init__(self) -> None:
        self.memory = bytearray(1024)
        self.count = 0

    def buffer(self) -> memoryview:
        return memoryview(self.memory)

    def received(self, count: int) -> None:
        self.count += count

    def sent(self) -> None: ...
    def closed(self) -> None: ...


def frame(client_id: str) -> bytes:
    body = encode(api_versions.Request("library", "1"), 3)
    return encode_request_header(RequestHeader(18, 3, 7, client_id)) + body


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_requests_are_found_however_their_bytes_are_divided(step: int) -> None:
    log, sink = RequestLog(), Sink()
    peer = TappedPeer(sink, log)
    sent = [frame("first"), frame("ottla-testing"), frame("second")]
    stream = b"".join(len(each).to_bytes(4, "big") + each for each in sent)
    for start in range(0, len(stream), step):
        piece = stream[start : start + step]
        peer.buffer()[: len(piece)] = piece
        peer.received(len(piece))
    assert sink.count == len(stream)
    assert log.frames(ApiKey.API_VERSIONS) == [sent[0], sent[2]]
    assert log.frames(ApiKey.FETCH) == []
    found = decode_sent(sent[2])
    assert (found.api, found.version, found.client_id) == ("ApiVersions", 3, "second")
    assert found.body.client_software_name == "library"


def test_the_oldest_requests_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tested, "BYTES_MAX", 3 * len(frame("0")))
    log = RequestLog()
    for number in range(5):
        log.add(frame(str(number)))
    log.add(b"GET / HTTP/1.1")
    kept = [decode_sent(each).client_id for each in log.frames(ApiKey.API_VERSIONS)]
    assert kept == ["2", "3", "4"]


@pytest.mark.parametrize("process", [False, True])
def test_a_test_sees_what_its_client_sent(process: bool) -> None:
    with Broker(process=process) as broker:
        broker.produce("orders", "of the test itself")
        assert broker.requests("Produce") == []
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "client.id": "shop", "acks": 1}
        )
        producer.produce("orders", "value")
        assert producer.flush(30) == 0
        (sent,) = broker.requests("Produce")
        assert (sent.api, sent.client_id, sent.body.acks) == ("Produce", "shop", 1)
        assert b"value" in bytes(sent.body.topic_data[0].partition_data[0].records)
        with pytest.raises(ValueError, match="not an API"):
            broker.requests("Produse")


@pytest.mark.timeout(120)
def test_requests_to_a_cluster_are_those_of_clients() -> None:
    with Cluster(brokers=2) as cluster:
        cluster.create_topic("orders", replication_factor=2)
        cluster.produce("orders", b"value")
        producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers})
        producer.produce("orders", "value")
        assert producer.flush(30) == 0
        assert [sent.client_id for sent in cluster.requests("Produce")] == ["rdkafka"]
        assert cluster.requests("Fetch") == []
