"""What can be read off a broker."""

from types import SimpleNamespace
from typing import Any

from ottla import __version__
from ottla.broker.metrics.metrics import Metrics
from ottla.broker.node.gauges import add_gauges


def test_every_gauge_reads_the_state_of_the_moment() -> None:
    directory = SimpleNamespace(
        path="d", failure=None, is_full=False, logs={"t-0": SimpleNamespace(size_bytes=7)}
    )
    led, followed = SimpleNamespace(is_leader=True), SimpleNamespace(is_leader=False)
    broker: Any = SimpleNamespace(
        metrics=Metrics(),
        connections=SimpleNamespace(open={"a": None}),
        partitions=SimpleNamespace(
            all=lambda: [led, led, followed], unclean_elections=2, damages=3
        ),
        settings=SimpleNamespace(ottla_drained=True),
        replicas=SimpleNamespace(proposals=SimpleNamespace(shrunk=4, expanded=5)),
        image=SimpleNamespace(topics_by_name={"t": None}),
        cluster_gauges=SimpleNamespace(add=lambda: None),
        fetch_sessions=[1],
        memory=SimpleNamespace(used_bytes=5),
        cleaner=SimpleNamespace(read_bytes=30, written_bytes=3, uncleanable={}),
        directories=SimpleNamespace(all=lambda: [directory]),
        env=SimpleNamespace(network=SimpleNamespace(peer_failures=6)),
    )
    add_gauges(broker)
    directory.failure = OSError()
    shown = broker.metrics.as_text().splitlines()
    assert f'ottla_info{{version="{__version__}"}} 1' in shown
    assert "ottla_connections 1" in shown
    assert "ottla_partitions 2" in shown
    assert "ottla_followed_partitions 1" in shown
    assert "ottla_isr_shrinks_total 4" in shown
    assert "ottla_unclean_elections_total 2" in shown
    assert "ottla_damaged_logs_total 3" in shown
    assert "ottla_peer_failures_total 6" in shown
    assert "ottla_drained 1" in shown
    assert "ottla_cleaner_read_bytes_total 30" in shown
    assert 'ottla_log_bytes{directory="d"} 7' in shown
    assert 'ottla_log_directory_online{directory="d"} 0' in shown
    resident = next(line for line in shown if line.startswith("ottla_process_resident_bytes"))
    assert int(resident.split()[1]) > 1_000_000
