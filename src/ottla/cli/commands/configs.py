"""`ottla configs`: show and change configs of topics, brokers and groups."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.tasks.client_options import (
    BOOTSTRAP_DEFAULT,
    AsJson,
    Bootstrap,
    Misuse,
    ask,
    failures_told,
    parse_pairs,
)
from ottla.cli.tool import Tool

if TYPE_CHECKING:
    from ottla.client.admin import Operation, ResourceType
    from ottla.client.cluster import Cluster
    from ottla.protocol.messages.describe_configs import DescribeConfigsResourceResult

app = Tool(
    "configs",
    help="""See and change the configs of topics, brokers and groups.

    \b
    Examples:
      ottla configs describe topic orders
      ottla configs alter topic orders --set retention.ms=604800000
      ottla configs describe broker 1 --all
    """,
    contacts_cluster=True,
)

ALL_BROKERS = "default"
SOURCES = {
    1: "topic",
    2: "broker",
    3: "all brokers",
    4: "server.properties",
    5: "default",
    6: "broker logger",
    7: "client metrics",
    8: "group",
}
DEFAULT_SOURCE = 5
OWN_SETTING = "ottla.record.validation"


class Kind(StrEnum):
    TOPIC = "topic"
    BROKER = "broker"
    GROUP = "group"


KindArgument = Annotated[Kind, typer.Argument(metavar="topic|broker|group", help="Whose configs.")]
NameArgument = Annotated[
    str,
    typer.Argument(metavar="NAME", help="A topic's or group's name, a broker's id, or 'default'."),
]


@app.command()
def describe(
    kind: KindArgument,
    name: NameArgument,
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="[CONFIG]...", help="Only these configs.")
    ] = None,
    show_all: Annotated[
        bool, typer.Option("--all", "-a", help="Those with their default value too.")
    ] = False,
    documentation: Annotated[
        bool, typer.Option("--documentation", "-d", help="Say what each of them does.")
    ] = False,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Show the configs of a topic, a broker or a group.

    \b
    Examples:
      ottla configs describe topic orders
      ottla configs describe topic orders retention.ms segment.bytes -d
      ottla configs describe broker 1 --all --json
      ottla configs describe group billing --all
    """
    from ottla.cli.views.terminal import say, show_json, show_table
    from ottla.client.admin import Admin

    async def work(cluster: "Cluster") -> None:
        await _check_broker(cluster, kind, name)
        found = await Admin(cluster).describe_configs(
            *_resource(kind, name), keys or None, documentation=documentation
        )
        if not (show_all or keys):
            found = [item for item in found if item.config_source != DEFAULT_SOURCE]
        if as_json:
            show_json([_as_json(item, documentation) for item in found])
        elif not found:
            say(f"Every config of {kind} {name} has its default value: --all shows them.")
        else:
            columns = ["Config", "Value", "Set by"] + ["Meaning"] * documentation
            show_table(columns, [_row(item, documentation) for item in found])

    ask(work, bootstrap)


@app.command()
def alter(
    kind: KindArgument,
    name: NameArgument,
    assign: Annotated[
        list[str], typer.Option("--set", "-s", metavar="NAME=VALUE", help="Set it.")
    ] = [],  # noqa: B006  The command line's library copies it.
    unset: Annotated[
        list[str], typer.Option("--unset", "-u", metavar="NAME", help="Back to its default.")
    ] = [],  # noqa: B006
    append: Annotated[
        list[str], typer.Option("--append", metavar="NAME=VALUE", help="Add to a list.")
    ] = [],  # noqa: B006
    subtract: Annotated[
        list[str], typer.Option("--subtract", metavar="NAME=VALUE", help="Take from a list.")
    ] = [],  # noqa: B006
    validate_only: Annotated[
        bool, typer.Option("--validate-only", help="Only see whether it would be accepted.")
    ] = False,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
) -> None:
    """Change configs of a topic, a group, one broker, or all brokers ('default').

    \b
    Examples:
      ottla configs alter topic orders --set retention.ms=86400000
      ottla configs alter topic orders --append cleanup.policy=compact --unset segment.ms
      ottla configs alter broker default --set log.retention.ms=3600000
      ottla configs alter group billing --set consumer.session.timeout.ms=60000
    """
    from ottla.cli.views.terminal import plural, say
    from ottla.client.admin import Admin

    with failures_told():
        changes = _changes(assign, unset, append, subtract)
        if not changes:
            raise Misuse("nothing to change: give --set, --unset, --append or --subtract")

    async def work(cluster: "Cluster") -> None:
        resource = _resource(kind, name)
        await _check_broker(cluster, kind, name)
        await Admin(cluster).alter_configs(*resource, changes, validate_only=validate_only)
        done = "would be changed" if validate_only else "changed"
        say(f"{kind.capitalize()} {name}: {plural(len(changes), 'config')} {done}.")
        idle = _without_effect(kind, [key for _, key, _ in changes])
        if idle and await _is_ottla(cluster):
            verb = "has" if len(idle) == 1 else "have"
            say(f"{', '.join(idle)} {verb} no effect in Ottla; the value is only stored.")

    ask(work, bootstrap)


def _resource(kind: Kind, name: str) -> "tuple[ResourceType, str]":
    from ottla.client.admin import ResourceType

    if kind is Kind.TOPIC:
        return ResourceType.TOPIC, name
    if kind is Kind.GROUP:
        return ResourceType.GROUP, name
    if name == ALL_BROKERS:
        return ResourceType.BROKER, ""
    if not name.isdecimal():
        raise Misuse(f"{name!r} is no broker: give its id, a number, or 'default' for all")
    return ResourceType.BROKER, name


async def _check_broker(cluster: "Cluster", kind: Kind, name: str) -> None:
    """Refuse a broker that does not run, instead of waiting for it."""
    from ottla.client.errors import ClientError

    if kind is not Kind.BROKER or not name.isdecimal():
        return
    await cluster.refresh()
    running = sorted(cluster.metadata.nodes)
    if int(name) not in running:
        there = ", ".join(map(str, running))
        raise ClientError(f"there is no broker {name} running; there are {there}")


def _changes(
    assign: list[str], unset: list[str], append: list[str], subtract: list[str]
) -> "list[tuple[Operation, str, str | None]]":
    from ottla.client.admin import Operation

    changes: list[tuple[Operation, str, str | None]] = []
    for operation, option, pairs in (
        (Operation.SET, "--set", assign),
        (Operation.APPEND, "--append", append),
        (Operation.SUBTRACT, "--subtract", subtract),
    ):
        changes += [(operation, key, value) for key, value in parse_pairs(pairs, option).items()]
    return changes + [(Operation.DELETE, key, None) for key in unset]


def _without_effect(kind: Kind, keys: list[str]) -> list[str]:
    from ottla.metadata.configs.catalogue import BROKER_CONFIGS, TOPIC_CONFIGS
    from ottla.metadata.configs.definition import Service
    from ottla.metadata.configs.group import GROUP_CONFIGS

    tables = {Kind.TOPIC: TOPIC_CONFIGS, Kind.BROKER: BROKER_CONFIGS, Kind.GROUP: GROUP_CONFIGS}
    known = tables[kind]
    return [key for key in keys if key in known and known[key].service is not Service.SERVED]


async def _is_ottla(cluster: "Cluster") -> bool:
    """True if the broker has settings of Ottla's own; a broker of Apache Kafka has none."""
    from ottla.client.admin import Admin, ResourceType

    admin = Admin(cluster)
    node_id = (await admin.describe_cluster()).brokers[0].broker_id
    return bool(await admin.describe_configs(ResourceType.BROKER, str(node_id), [OWN_SETTING]))


def _row(item: "DescribeConfigsResourceResult", documentation: bool) -> list[str]:
    row = [item.name, _value(item), SOURCES.get(item.config_source, "unknown")]
    return [*row, item.documentation or ""] if documentation else row


def _value(item: "DescribeConfigsResourceResult") -> str:
    if item.is_sensitive:
        return "(hidden)"
    return "" if item.value is None else item.value


def _as_json(item: "DescribeConfigsResourceResult", documentation: bool) -> dict[str, object]:
    shown: dict[str, object] = {
        "name": item.name,
        "value": item.value,
        "source": SOURCES.get(item.config_source, "unknown"),
        "read_only": item.read_only,
        "sensitive": item.is_sensitive,
        "synonyms": [
            {"name": other.name, "value": other.value, "source": SOURCES.get(other.source)}
            for other in item.synonyms
        ],
    }
    return shown | ({"documentation": item.documentation} if documentation else {})
