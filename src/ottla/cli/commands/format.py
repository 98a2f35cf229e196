"""`ottla format`: prepares log directories for a node, with the options of Kafka's storage tool."""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from dataclasses import replace

from ottla.broker.node.auto_format import format_for
from ottla.broker.node.directory_format import Format, format_directories
from ottla.broker.settings.error import SettingsError
from ottla.broker.settings.settings import Settings
from ottla.cli.tasks.settings_file import add_settings_options, load_file
from ottla.model.errors import FormatRefused

EXAMPLES = """
Examples:
  ottla format -t MkU3OEVBNTcwNTJENDM2Qk -c server.properties --standalone
  ottla format -t MkU3OEVBNTcwNTJENDM2Qk -c server.properties --ignore-formatted
"""


def main(arguments: Sequence[str]) -> None:
    options = _parser().parse_args(arguments)
    settings = load_file(options.config, options)
    try:
        for line in _format(settings, options):
            print(line)
    except (FormatRefused, ValueError) as refused:
        raise SettingsError(str(refused)) from refused
    except OSError as error:
        raise SettingsError(f"{error.filename or options.config}: {error.strerror}.") from error


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="ottla format",
        description="Prepare the log directories of a node for their cluster.",
        epilog=EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("-t", "--cluster-id", required=True, help="the id of the cluster")
    parser.add_argument("-c", "--config", required=True, metavar="server.properties")
    quorum = parser.add_mutually_exclusive_group()
    quorum.add_argument(
        "-s", "--standalone", action="store_true", help="this node is the only voter"
    )
    quorum.add_argument(
        "-I",
        "--initial-controllers",
        metavar="ID@HOST:PORT:DIRECTORY_ID,...",
        help="these nodes are the voters",
    )
    quorum.add_argument(
        "-N",
        "--no-initial-controllers",
        action="store_true",
        help="this node joins a quorum that is there already",
    )
    parser.add_argument("-g", "--ignore-formatted", action="store_true")
    parser.add_argument("-r", "--release-version", metavar="VERSION", help="such as 4.3")
    parser.add_argument(
        "-f", "--feature", action="append", default=[], metavar="NAME=LEVEL", help="may be repeated"
    )
    add_settings_options(parser)
    return parser


def _format(settings: Settings, options: Namespace) -> list[str]:
    from random import SystemRandom

    from ottla.env.clock import RealClock
    from ottla.env.disk import real_disk

    wanted = replace(
        _quorum(settings, options),
        features=_features(options.feature),
        release_version=options.release_version,
    )
    return format_directories(real_disk(), wanted, RealClock().wall(), SystemRandom().randbytes)


def _quorum(settings: Settings, options: Namespace) -> Format:
    from ottla.quorum.voters import initial_voters

    chosen = options.standalone or options.initial_controllers or options.no_initial_controllers
    alone = format_for(settings, options.cluster_id, ignore_formatted=options.ignore_formatted)
    if settings.is_quorum_static:
        if chosen:
            raise FormatRefused(
                "controller.quorum.voters names the voters, so --standalone, --initial-controllers "
                "and --no-initial-controllers have no place."
            )
        return alone
    if options.standalone:
        return alone
    if options.initial_controllers:
        listener = settings.controller_listener_names[0]
        voters = initial_voters(options.initial_controllers, listener)
        return replace(alone, standalone_at=None, initial_voters=voters)
    if options.no_initial_controllers:
        return replace(alone, standalone_at=None)
    raise FormatRefused(
        "controller.quorum.voters is not set, so say who votes: --standalone, "
        "--initial-controllers or --no-initial-controllers."
    )


def _features(items: Sequence[str]) -> dict[str, int]:
    features = {}
    for item in items:
        name, equals, level = item.partition("=")
        if not equals or not level.isdigit():
            raise SettingsError(f"--feature {item} is not of the form name=level.")
        features[name] = int(level)
    return features
