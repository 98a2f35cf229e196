"""`ottla up`: one broker on this machine, with no configuration at all."""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence

from ottla.broker.node.preparation import prepare_up
from ottla.broker.settings.error import SettingsError
from ottla.broker.settings.settings import zero_configuration
from ottla.cli.tasks.serving import serve
from ottla.cli.tasks.settings_file import add_settings_options, changes_of, load_changed

EXAMPLES = """
Examples:
  ottla up
  ottla up --brokers 3
  ottla up --data /var/lib/ottla --port 19092
  ottla up --set num.partitions=4 --set log.retention.hours=24
"""


def main(arguments: Sequence[str]) -> None:
    parser = ArgumentParser(
        prog="ottla up",
        description="Start a broker. An empty or missing data directory is made ready for it.",
        epilog=EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", default="data", metavar="DIR", help="default: ./data")
    parser.add_argument("--host", default="127.0.0.1", help="default: 127.0.0.1")
    parser.add_argument("--port", type=int, default=9092, help="default: 9092; 0 takes a free one")
    parser.add_argument(
        "--brokers", type=int, default=1, metavar="N", help="this many nodes, a process each"
    )
    add_settings_options(parser)
    options = parser.parse_args(arguments)
    if options.brokers != 1:
        _up_many(options)
        return
    properties = zero_configuration(options.data, host=options.host, port=options.port)
    settings = load_changed(properties, {}, options)
    serve(settings, prepare_up)


def _up_many(options: Namespace) -> None:
    """Check what was asked for before anything is made, then run the nodes."""
    import os
    import socket

    from ottla.broker.node.local_cluster import LocalCluster
    from ottla.cli.tasks.nodes import run_nodes

    if options.brokers < 1:
        raise SettingsError(f"--brokers {options.brokers}: a cluster has one node or more.")
    if not 0 < options.port <= 65_535 - 2 * options.brokers:
        raise SettingsError(f"--port {options.port} leaves no room for the ports of all nodes.")
    cluster = LocalCluster.at(
        os.path.abspath(options.data),
        options.brokers,
        host=options.host,
        port=options.port,
        rack=socket.gethostname(),
    )
    changes = changes_of(options)
    for node in cluster.nodes:
        load_changed(cluster.properties_of(node), {}, options)
    run_nodes(cluster, changes)
