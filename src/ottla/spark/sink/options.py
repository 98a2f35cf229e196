"""The options of the sink: `topic`, and what Kafka's producer calls its settings."""

from collections.abc import Mapping
from typing import Final

from ottla.records.compression import Codec
from ottla.spark.errors import BadOption
from ottla.spark.options import Access, Given
from ottla.spark.sink.producer import SinkSettings

# A write is always idempotent and confirmed by all in-sync replicas, and a task hands over whole
# columns, so that there is nothing to wait for: these are accepted and change nothing.
WITHOUT_EFFECT: Final = (
    *("kafka.acks", "kafka.enable.idempotence", "kafka.linger.ms", "kafka.buffer.memory"),
    *("kafka.max.block.ms", "kafka.retries", "includeHeaders"),
)
# The protocol counts a batch in 32 bits, and a broker takes no request of more than 100 MiB.
REQUEST_BYTES_MAX: Final = 100 * 1024 * 1024


def read_options(options: Mapping[str, str]) -> tuple[Access, SinkSettings, str | None]:
    """How to reach the cluster, how to write, and the topic of all rows if one is named."""
    given = Given(options)
    access = given.access()
    topic = given.text("topic")
    if topic is not None and not topic.strip():
        raise BadOption("topic", topic, "name a topic")
    codecs = [codec.name.lower() for codec in Codec]
    codec = given.choice("kafka.compression.type", codecs, "none")
    defaults = SinkSettings()
    record_bytes_max = _size(given, "kafka.max.request.size")
    request_bytes_max = max(defaults.request_bytes_max, record_bytes_max or 0)
    batch_bytes_max = _size(given, "kafka.batch.size") or defaults.batch_bytes_max
    requests = given.number("kafka.max.in.flight.requests.per.connection")
    settings = SinkSettings(
        codec=Codec[codec.upper()],
        batch_bytes_max=min(batch_bytes_max, record_bytes_max or batch_bytes_max),
        request_bytes_max=request_bytes_max,
        requests_max=min(requests or defaults.requests_max, defaults.requests_max),
        delivery_ms_max=given.number("kafka.delivery.timeout.ms") or defaults.delivery_ms_max,
        request_ms_max=access.request_ms_max,
        record_bytes_max=record_bytes_max,
    )
    for name in WITHOUT_EFFECT:
        given.text(name)
    given.finish()
    return access, settings, topic


def _size(given: Given, name: str) -> int | None:
    size = given.size(name)
    if size is not None and size > REQUEST_BYTES_MAX:
        raise BadOption(name, size, f"it must be at most {REQUEST_BYTES_MAX}")
    return size
