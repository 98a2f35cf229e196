"""What the broker counts, and the text that Prometheus reads."""

import pytest

from ottla.broker.metrics.metrics import LABEL_VALUES_MAX, Metrics
from ottla.env.turns import Histogram
from ottla.protocol.apis import ApiKey


def lines(metrics: Metrics) -> list[str]:
    return metrics.as_text().splitlines()


def test_counters_show_what_was_counted() -> None:
    metrics = Metrics()
    metrics.requests[ApiKey.PRODUCE] += 2
    metrics.requests[ApiKey.API_VERSIONS] += 1
    metrics.bytes_in += 100
    shown = lines(metrics)
    assert 'ottla_requests_total{api="Produce"} 2' in shown
    assert 'ottla_requests_total{api="ApiVersions"} 1' in shown
    assert "ottla_bytes_in_total 100" in shown
    assert "# TYPE ottla_bytes_in_total counter" in shown


def test_a_gauge_is_read_when_someone_asks() -> None:
    metrics, readings = Metrics(), iter([1, 2.5])
    metrics.add_gauge("ottla_things", "Things.", lambda: next(readings))
    assert "ottla_things 1" in lines(metrics)
    assert "ottla_things 2.5" in lines(metrics)


def test_a_label_cannot_break_out_of_its_quotes() -> None:
    metrics = Metrics()
    metrics.add_gauge("g", "G.", lambda: {'a"b\\c\nd': 1}, label="topic")
    assert r'g{topic="a\"b\\c\nd"} 1' in lines(metrics)


def test_the_values_of_a_label_are_capped_and_the_rest_summed_up() -> None:
    metrics = Metrics()
    many = {f"{i:04}": 1.0 for i in range(LABEL_VALUES_MAX + 5)}
    metrics.add_gauge("g", "G.", lambda: many, label="topic")
    shown = [line for line in lines(metrics) if line.startswith("g{")]
    assert len(shown) == LABEL_VALUES_MAX + 1
    assert shown[-1] == 'g{topic="(others)"} 5'


def test_a_gauges_name_is_its_own() -> None:
    metrics = Metrics()
    metrics.add_gauge("g", "G.", lambda: 0)
    with pytest.raises(AssertionError):
        metrics.add_gauge("g", "G.", lambda: 0)


def test_a_histogram_counts_each_value_in_every_bucket_above_it() -> None:
    metrics = Metrics()
    metrics.add_histogram("h", "H.", lambda: Histogram((0.5, 1.0), [3, 2, 1], 7.25))
    assert [line for line in lines(metrics) if line.startswith(("h", "# TYPE h"))] == [
        "# TYPE h histogram",
        'h_bucket{le="0.5"} 3',
        'h_bucket{le="1.0"} 5',
        'h_bucket{le="+Inf"} 6',
        "h_sum 7.25",
        "h_count 6",
    ]
