"""`ottla start server.properties`: a broker with Kafka's own settings file."""

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from functools import partial

from ottla.broker.node.auto_format import prepare_start
from ottla.cli.tasks.serve import serve
from ottla.cli.tasks.settings_file import add_settings_options, load_file

EXAMPLES = """
Examples:
  ottla start server.properties
  ottla start server.properties --set log.dirs=/disk1,/disk2
"""


def main(arguments: Sequence[str]) -> None:
    parser = ArgumentParser(
        prog="ottla start",
        description="Start a broker by a server.properties file.",
        epilog=EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="server.properties")
    add_settings_options(parser)
    options = parser.parse_args(arguments)
    serve(load_file(options.file, options), partial(prepare_start, file=options.file))
