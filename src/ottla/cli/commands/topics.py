"""`ottla topics`: create, list, describe, change and delete topics."""

import sys
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
from ottla.model.types import NodeId, uuid_text

if TYPE_CHECKING:
    from ottla.client.cluster import Cluster
    from ottla.protocol.messages.metadata import MetadataResponseTopic

app = Tool(
    "topics",
    help="""Create, list, describe, change and delete topics.

    \b
    Examples:
      ottla topics create orders --partitions 6
      ottla topics list
      ottla topics describe orders
    """,
    contacts_cluster=True,
)

Name = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")]
Names = Annotated[list[str], typer.Argument(metavar="TOPIC...", help="The topics' names.")]
SetConfig = Annotated[
    list[str],
    typer.Option("--config", "-c", metavar="NAME=VALUE", help="A topic config; may be repeated."),
]


@app.command()
def create(
    name: Name,
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", "-p", metavar="N", min=1, help="Default: num.partitions."),
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(
            "--replication-factor", "-r", metavar="N", min=1, help="Default: the broker's."
        ),
    ] = None,
    config: SetConfig = [],  # noqa: B006  The command line's library copies it.
    assignment: Annotated[
        str | None,
        typer.Option(
            metavar="1:2,2:3",
            help="The brokers of each partition: here two partitions on two brokers each.",
        ),
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="It is no failure if it exists already.")
    ] = False,
    validate_only: Annotated[
        bool, typer.Option("--validate-only", help="Only see whether it could be made.")
    ] = False,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Make a topic.

    \b
    Examples:
      ottla topics create orders
      ottla topics create orders --partitions 6 --config retention.ms=86400000
      ottla topics create orders --config cleanup.policy=compact
    """
    from ottla.cli.views.terminal import say, show_json
    from ottla.client.admin import BROKER_DEFAULT, Admin
    from ottla.client.errors import Refused
    from ottla.model.errors import ErrorCode

    with failures_told():
        configs = parse_pairs(config, "--config")
        assignments = _parse_assignment(assignment)
        if assignments and (partitions or replication_factor):
            raise Misuse("--assignment says the partitions and replicas by itself")

    async def work(cluster: "Cluster") -> None:
        try:
            made = await Admin(cluster).create_topic(
                name,
                partitions=partitions or BROKER_DEFAULT,
                replication_factor=replication_factor or BROKER_DEFAULT,
                configs=configs,
                assignments=assignments,
                validate_only=validate_only,
            )
        except Refused as failure:
            if failure.code != ErrorCode.TOPIC_ALREADY_EXISTS or not if_not_exists:
                raise
            if as_json:
                show_json({"topic": name, "created": False})
            else:
                say(f"Topic {name} exists already.")
            return
        if as_json:
            show_json(
                {
                    "topic": name,
                    "created": not validate_only,
                    "id": uuid_text(made.topic_id),
                    "partitions": made.num_partitions,
                    "replication_factor": made.replication_factor,
                }
            )
        else:
            done = "could be made" if validate_only else "made"
            say(
                f"Topic {name} {done}: {_count(made.num_partitions, 'partition')}, "
                f"{_count(made.replication_factor, 'replica')} each."
            )

    ask(work, bootstrap)


@app.command("list")
def list_topics(
    internal: Annotated[
        bool, typer.Option("--internal", help="Show Kafka's own topics too.")
    ] = False,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: AsJson = False,
) -> None:
    """List the topics.

    \b
    Examples:
      ottla topics list
      ottla topics list --json | jq -r '.[].topic'
    """
    from ottla.cli.views.terminal import say, show_json, show_table
    from ottla.client.admin import Admin

    async def work(cluster: "Cluster") -> None:
        topics = [
            topic
            for topic in await Admin(cluster).describe_topics()
            if internal or not topic.is_internal
        ]
        if as_json:
            show_json([_summary(topic) for topic in topics])
        elif not topics:
            say("There are no topics yet: make one with 'ottla topics create NAME'.")
        else:
            show_table(
                ["Topic", "Partitions>", "Replicas>", "Under-replicated>"],
                [
                    [topic.name, len(topic.partitions), _replicas(topic), _lacking(topic)]
                    for topic in topics
                ],
            )

    ask(work, bootstrap)


@app.command()
def describe(
    names: Names,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Show a topic's partitions, offsets and configs.

    \b
    Examples:
      ottla topics describe orders
      ottla topics describe orders payments --json
    """
    from ottla.cli.views.topic_view import describe_topics

    ask(lambda cluster: describe_topics(cluster, names, as_json=as_json), bootstrap)


@app.command()
def alter(
    name: Name,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions", "-p", metavar="N", min=1, help="How many there shall be; only grows."
        ),
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(
            "--replication-factor", "-r", metavar="N", min=1, help="Replicas of each partition."
        ),
    ] = None,
    config: SetConfig = [],  # noqa: B006
    delete_config: Annotated[
        list[str],
        typer.Option("--delete-config", metavar="NAME", help="Back to the broker's default."),
    ] = [],  # noqa: B006
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
) -> None:
    """Add partitions to a topic, change its replication factor, or its configs.

    Keys may move to other partitions when their number changes.

    \b
    Examples:
      ottla topics alter orders --partitions 12
      ottla topics alter orders --replication-factor 3
      ottla topics alter orders --config retention.ms=3600000 --delete-config segment.bytes
    """
    from ottla.cli.views.terminal import say
    from ottla.client.admin import Admin, Operation, ResourceType

    with failures_told():
        changes: list[tuple[Operation, str, str | None]] = [
            (Operation.SET, key, value) for key, value in parse_pairs(config, "--config").items()
        ]
        changes += [(Operation.DELETE, key, None) for key in delete_config]
        if not changes and partitions is None and replication_factor is None:
            raise Misuse(
                "nothing to change: give --partitions, --replication-factor, --config or "
                "--delete-config"
            )

    async def work(cluster: "Cluster") -> None:
        admin = Admin(cluster)
        if changes:
            await admin.alter_configs(ResourceType.TOPIC, name, changes)
            say(f"Topic {name}: {_count(len(changes), 'config')} changed.")
        if partitions is not None:
            await admin.create_partitions(name, partitions)
            say(f"Topic {name} has {_count(partitions, 'partition')} now.")
        if replication_factor is not None:
            from ottla.cli.tasks.reassign import change_replication_factor

            await change_replication_factor(cluster, name, replication_factor)
            say(f"Topic {name} has {_count(replication_factor, 'replica')} of each partition now.")

    ask(work, bootstrap)


@app.command()
def delete(
    names: Names,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="It is no failure if there is none.")
    ] = False,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
) -> None:
    """Delete topics with all of their records. On a terminal it asks first.

    \b
    Examples:
      ottla topics delete orders
      ottla topics delete orders payments --yes
    """
    from ottla.cli.views.terminal import say
    from ottla.client.admin import Admin
    from ottla.client.metadata import UnknownTopic

    if not yes and sys.stdin.isatty():
        typer.confirm(f"Delete {', '.join(names)} with all records?", abort=True)

    async def work(cluster: "Cluster") -> None:
        for name in names:
            try:
                await Admin(cluster).delete_topic(name)
            except UnknownTopic:
                if not if_exists:
                    raise
                say(f"There is no topic {name}.")
            else:
                say(f"Topic {name} deleted.")

    ask(work, bootstrap)


def _parse_assignment(text: str | None) -> dict[int, list[NodeId]] | None:
    if text is None:
        return None
    try:
        return {
            index: [NodeId(int(node)) for node in partition.split(":")]
            for index, partition in enumerate(text.split(","))
        }
    except ValueError:
        raise Misuse(
            f"--assignment {text!r}: expected broker ids like 1:2,2:3 (two partitions)"
        ) from None


def _summary(topic: "MetadataResponseTopic") -> dict[str, object]:

    return {
        "topic": topic.name,
        "id": uuid_text(topic.topic_id),
        "partitions": len(topic.partitions),
        "replication_factor": _replicas(topic),
        "under_replicated": _lacking(topic),
        "internal": topic.is_internal,
    }


def _replicas(topic: "MetadataResponseTopic") -> int:
    return max((len(item.replica_nodes) for item in topic.partitions), default=0)


def _lacking(topic: "MetadataResponseTopic") -> int:
    return sum(len(item.isr_nodes) < len(item.replica_nodes) for item in topic.partitions)


def _count(count: int, noun: str) -> str:
    from ottla.cli.views.terminal import plural

    return plural(count, noun)
