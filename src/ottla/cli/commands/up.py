"""`ottla up`: one broker, or a cluster, on this machine without configuration."""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.broker.node.auto_format import prepare_up
from ottla.broker.settings.error import SettingsError
from ottla.broker.settings.settings import zero_configuration
from ottla.cli.tasks.serve import serve
from ottla.cli.tasks.settings_file import add_settings_options, changes_of, load_changed

if TYPE_CHECKING:
    from ottla.broker.node.local_cluster import LocalCluster

HOST = "127.0.0.1"
PORT = 9092

EXAMPLES = """
Examples:
  ottla up
  ottla up --brokers 3
  ottla up --brokers 5          two more, if ./data has three
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
    parser.add_argument("--host", help=f"default: {HOST}")
    parser.add_argument("--port", type=int, help=f"default: {PORT}; 0 takes free ones")
    parser.add_argument(
        "--brokers",
        type=int,
        metavar="N",
        help="this many nodes, a process each; default: those that DIR has, or one",
    )
    add_settings_options(parser)
    options = parser.parse_args(arguments)
    if options.brokers != 1 and _up_many(options):
        return
    host = HOST if options.host is None else options.host
    port = PORT if options.port is None else options.port
    properties = zero_configuration(options.data, host=host, port=port)
    settings = load_changed(properties, {}, options)
    serve(settings, prepare_up)


def _up_many(options: Namespace) -> bool:
    """Run a local cluster until a signal; False if only one node is wanted."""
    import os
    import socket

    from ottla.broker.node.local_cluster import LocalCluster
    from ottla.cli.tasks.nodes import run_nodes
    from ottla.env.disk import real_disk
    from ottla.model.errors import FormatRefused

    data = os.path.abspath(options.data)
    if options.brokers is not None and options.brokers < 1:
        raise SettingsError(f"--brokers {options.brokers}: a cluster has one node or more.")
    try:
        stored = LocalCluster.stored(real_disk(), data, rack=socket.gethostname())
        if stored is not None:
            cluster = _grown(options, stored)
        elif options.brokers is not None:
            cluster = _new(options, data)
        else:
            return False
    except FormatRefused as refused:
        raise SettingsError(str(refused)) from refused
    for node in cluster.nodes:
        load_changed(cluster.properties_of(node), {}, options)
    run_nodes(cluster, changes_of(options))
    return True


def _new(options: Namespace, data: str) -> "LocalCluster":
    import socket

    from ottla.broker.node.local_cluster import PORT_MAX, LocalCluster

    host = HOST if options.host is None else options.host
    port = PORT if options.port is None else options.port
    count, rack = options.brokers, socket.gethostname()
    if port == 0:
        return LocalCluster.on_ports(data, _free_ports(host, count), host=host, rack=rack)
    if not 0 < port <= PORT_MAX + 1 - 2 * count:
        raise SettingsError(f"--port {port} leaves no room for the ports of all nodes.")
    return LocalCluster.at(data, count, host=host, port=port, rack=rack)


def _grown(options: Namespace, stored: "LocalCluster") -> "LocalCluster":
    first = stored.nodes[0]
    for name, wanted, kept in (
        ("host", options.host, first.host),
        ("port", options.port, first.port),
    ):
        if wanted not in (None, kept):
            raise SettingsError(
                f"--{name} {wanted}: the nodes in {options.data} keep {name} {kept}. Leave "
                f"--{name} out, or choose another --data."
            )
    return stored.grown_to(options.brokers or len(stored.nodes))


def _free_ports(host: str, count: int) -> list[tuple[int, int]]:
    """Pairs of free ports."""
    import socket
    from contextlib import ExitStack

    with ExitStack() as stack:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        servers = [
            stack.enter_context(socket.create_server((host, 0), family=family))
            for _ in range(2 * count)
        ]
        ports = [server.getsockname()[1] for server in servers]
    return list(zip(ports[::2], ports[1::2], strict=True))
