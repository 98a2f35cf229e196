"""Greedy clients as a process: honest requests, pipelined without end over many connections.

    python greedy_clients.py PORT SECONDS CONNECTIONS TOPIC

Prints how many bytes the broker has taken when the time is over.
"""

import socket
import sys
import threading
import time
from random import Random
from struct import pack
from typing import Any

from ottla.protocol.codec import encode
from ottla.protocol.header import RequestHeader, encode_request_header
from ottla.protocol.messages import describe_configs, list_offsets, produce
from ottla.simulation.clients.hostile_batches import honest_batch

TOPIC_RESOURCE = 2
REQUESTS = 257  # One more than may wait for their answers.
PRODUCE_BYTES = 246_000  # What one read brings.


def framed(request: Any, version: int) -> bytes:  # noqa: ANN401
    header = encode_request_header(RequestHeader(request.API_KEY, version, 1, "greedy"))
    frame = header + encode(request, version)
    return pack(">i", len(frame)) + frame


def describes(_: str) -> bytes:
    resources = [
        describe_configs.DescribeConfigsResource(TOPIC_RESOURCE, f"{number}")
        for number in range(50)
    ]
    return framed(describe_configs.Request(resources), 1) * REQUESTS


def produces(topic: str) -> bytes:
    now, rng = int(time.time() * 1000), Random(1)
    smallest = min((honest_batch(rng, now) for _ in range(100)), key=len)
    data = produce.TopicProduceData(
        name=topic, partition_data=[produce.PartitionProduceData(0, smallest)]
    )
    frame = framed(produce.Request(acks=1, timeout_ms=1000, topic_data=[data]), 7)
    return frame * (PRODUCE_BYTES // len(frame))


def searches(topic: str) -> bytes:
    part = list_offsets.ListOffsetsPartition(0, timestamp=int(time.time() * 1000) - 5)
    asked = list_offsets.ListOffsetsTopic(topic, [part])
    return framed(list_offsets.Request(topics=[asked]), 7) * REQUESTS


class Greedy(threading.Thread):
    def __init__(self, port: int, burst: bytes, end: float) -> None:
        super().__init__(daemon=True)
        self._burst, self._end = burst, end
        self._connection = socket.create_connection(("127.0.0.1", port))
        self._connection.settimeout(0.5)
        self.sent_bytes = 0

    def run(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()
        view = memoryview(self._burst)
        while time.monotonic() < self._end:
            try:
                count = self._connection.send(view)
            except TimeoutError:
                continue  # The broker does not read: there is too much to answer already.
            self.sent_bytes += count
            view = view[count:] or memoryview(self._burst)

    def _read(self) -> None:
        while time.monotonic() < self._end:
            try:
                if not self._connection.recv(1 << 18):
                    return
            except TimeoutError:
                continue


def main(port: int, seconds: float, connections: int, topic: str) -> None:
    end = time.monotonic() + seconds
    bursts = [make(topic) for make in (describes, produces, searches)]
    clients = [Greedy(port, bursts[number % 3], end) for number in range(connections)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    print(*[client.sent_bytes for client in clients])  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
