"""`ottla up`: one broker on this machine, with no configuration at all."""

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence

from ottla.broker.preparation import prepare_up
from ottla.broker.settings import zero_configuration
from ottla.cli.serving import serve
from ottla.cli.settings_file import add_settings_options, load_changed

EXAMPLES = """
Examples:
  ottla up
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
    add_settings_options(parser)
    options = parser.parse_args(arguments)
    properties = zero_configuration(options.data, host=options.host, port=options.port)
    settings = load_changed(properties, {}, options)
    serve(settings, prepare_up)
