"""What can be read off a broker."""

from ottla import __version__
from ottla.broker.node.gauges import add_gauges
from tests.unit.broker.requests import write
from tests.unit.broker.serving import serving


def test_every_gauge_reads_the_state_of_the_moment() -> None:
    with serving() as world:
        broker = world.broker
        add_gauges(broker)
        world.topic("t", 2)
        write(world, b"a")
        broker.partitions.unclean_elections, broker.partitions.damages = 2, 3
        broker.cleaner.read_bytes = 30
        size = world.partition().log.size_bytes
        (directory,) = broker.directories.all()
        directory.failure = OSError()
        shown = broker.metrics.as_text().splitlines()
        directory.failure = None
    assert f'ottla_info{{version="{__version__}"}} 1' in shown
    assert "ottla_partitions 2" in shown
    assert "ottla_followed_partitions 0" in shown
    assert "ottla_isr_shrinks_total 0" in shown
    assert "ottla_topics 1" in shown
    assert "ottla_unclean_elections_total 2" in shown
    assert "ottla_damaged_logs_total 3" in shown
    assert "ottla_peer_failures_total 0" in shown
    assert "ottla_cleaner_read_bytes_total 30" in shown
    assert f'ottla_log_bytes{{directory="/data"}} {size}' in shown
    assert 'ottla_log_directory_online{directory="/data"} 0' in shown
    resident = next(line for line in shown if line.startswith("ottla_process_resident_bytes"))
    assert int(resident.split()[1]) > 1_000_000
