"""Settings from a server.properties file and from `--set`, each with its origin."""

from argparse import ArgumentParser, Namespace

from ottla.broker.settings.error import SettingsError
from ottla.broker.settings.properties import Property, parse_properties
from ottla.broker.settings.settings import Settings


def add_settings_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="changes",
        help="set one of Kafka's or Ottla's settings; may be repeated",
    )
    parser.add_argument(
        "--ignore-unknown",
        action="store_true",
        help="pass over settings that nobody knows, instead of refusing them",
    )


def load_file(path: str, options: Namespace) -> Settings:
    """The settings of a file; the command line takes precedence."""
    properties: dict[str, str] = {}
    origins: dict[str, str] = {}
    for item in _read(path):
        properties[item.key] = item.value
        origins[item.key] = f"{path} line {item.line}"
    return load_changed(properties, origins, options)


def load_changed(
    properties: dict[str, str], origins: dict[str, str], options: Namespace
) -> Settings:
    for key, value in changes_of(options).items():
        properties[key] = value
        origins[key] = "--set"
    return Settings.load(properties, options.ignore_unknown, origins=origins)


def changes_of(options: Namespace) -> dict[str, str]:
    """The settings given by `--set`."""
    changes = {}
    for change in options.changes:
        key, equals, value = change.partition("=")
        if not equals or not key.strip():
            raise SettingsError(f"--set {change} is not of the form key=value.")
        changes[key.strip()] = value
    return changes


def _read(path: str) -> list[Property]:
    try:
        with open(path, encoding="utf-8") as file:
            return parse_properties(file.read())
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}.") from None
    except ValueError as error:
        raise SettingsError(f"{path}: {error}.") from None
