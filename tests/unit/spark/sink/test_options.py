import pytest

from ottla.records.compression import Codec
from ottla.spark.errors import BadOption
from ottla.spark.sink.options import read_options
from ottla.spark.sink.producer import SinkSettings

WHERE = {"kafka.bootstrap.servers": "localhost:9092"}


def test_an_address_is_all_that_is_needed() -> None:
    access, settings, topic = read_options(WHERE)
    assert access.bootstrap == "localhost:9092"
    assert settings == SinkSettings()
    assert topic is None


def test_kafkas_settings_have_kafkas_names() -> None:
    _, settings, topic = read_options(
        {
            **WHERE,
            "topic": "orders",
            "kafka.compression.type": "zstd",
            "kafka.batch.size": "64k",
            "kafka.max.request.size": "2097152",
            "kafka.max.in.flight.requests.per.connection": "9",
            "kafka.delivery.timeout.ms": "5000",
            "kafka.request.timeout.ms": "1000",
            "kafka.linger.ms": "5",
            "kafka.acks": "all",
        }
    )
    assert topic == "orders"
    assert settings == SinkSettings(
        codec=Codec.ZSTD,
        batch_bytes_max=65536,
        request_bytes_max=2097152,
        requests_max=5,
        delivery_ms_max=5000,
        request_ms_max=1000,
        record_bytes_max=2097152,
    )


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("tpoic", "t", "there is no such option; did you mean 'topic'?"),
        ("topic", " ", "name a topic"),
        ("kafka.compression.type", "brotli", "one of none, gzip, snappy, lz4, zstd"),
        ("kafka.batch.size", "1g", "it must be at most"),
        ("kafka.transactional.id", "me", "the sink chooses its own"),
    ],
)
def test_what_makes_no_sense_is_told(name: str, value: str, sentence: str) -> None:
    with pytest.raises(BadOption) as caught:
        read_options({**WHERE, name: value})
    assert name in str(caught.value)
    assert sentence in str(caught.value)
