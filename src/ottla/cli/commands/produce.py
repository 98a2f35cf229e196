"""`ottla produce`: write records from the command line, from files or from standard input."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.tasks.client_options import BOOTSTRAP_DEFAULT, AsJson, Bootstrap, ask, failures_told
from ottla.cli.tool import Tool

if TYPE_CHECKING:
    from ottla.client.cluster import Cluster


class Acks(StrEnum):
    ALL = "all"
    LEADER = "1"
    NONE = "0"


class Compression(StrEnum):
    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class InputFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


app = Tool("produce")


@app.command()
def produce(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Where the records go.")],
    values: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[VALUE]...", help="One record each; without any, lines of standard input."
        ),
    ] = None,
    files: Annotated[
        list[str],
        typer.Option("--file", "-f", metavar="FILE", help="Read lines from it; may be repeated."),
    ] = [],  # noqa: B006  The command line's library copies it.
    key: Annotated[
        str | None, typer.Option("--key", "-k", metavar="KEY", help="The key of all records.")
    ] = None,
    key_separator: Annotated[
        str | None,
        typer.Option(
            "--key-separator",
            "-K",
            metavar="CHARACTERS",
            help=r"What ends the key in a line, like : or \t.",
        ),
    ] = None,
    headers: Annotated[
        list[str],
        typer.Option("--header", "-H", metavar="NAME=VALUE", help="For all; may be repeated."),
    ] = [],  # noqa: B006
    partition: Annotated[
        int | None,
        typer.Option("--partition", "-p", metavar="N", min=0, help="Default: by the key."),
    ] = None,
    input_format: Annotated[
        InputFormat,
        typer.Option(
            "--format",
            metavar="text|json",
            help="json: lines as 'ottla consume --format json' writes them.",
        ),
    ] = InputFormat.TEXT,
    whole: Annotated[
        bool, typer.Option("--whole", "-w", help="One record per file (or all of the input).")
    ] = False,
    tombstone: Annotated[
        bool, typer.Option("--tombstone", help="One record without a value, for --key.")
    ] = False,
    acks: Annotated[
        Acks, typer.Option(metavar="all|1|0", help="Who must have it before it counts.")
    ] = Acks.ALL,
    compression: Annotated[
        Compression,
        typer.Option(
            "--compression", "-z", metavar="none|gzip|snappy|lz4|zstd", help="Of the batches."
        ),
    ] = Compression.NONE,
    idempotent: Annotated[
        bool, typer.Option(help="Each record once, even if the network fails (acks all).")
    ] = True,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Write records to a topic.

    \b
    Examples:
      ottla produce orders 'first order' 'second order'
      ottla produce orders --key 42 --header source=web 'an order'
      tail -f app.log | ottla produce logs
      ottla produce users --key-separator : --file users.txt --compression zstd
      ottla produce pictures --key cat.png --file cat.png --whole
      ottla consume a --to-end --format json | ottla produce b --format json
    """
    from ottla.cli.tasks import produce as task
    from ottla.client.delivery import ProducerSettings

    with failures_told():
        source = task.Source(
            values=values or [],
            files=files,
            key=key,
            key_separator=key_separator,
            headers=headers,
            is_json=input_format is InputFormat.JSON,
            is_whole=whole,
            is_tombstone=tombstone,
        )
        source.check()
    settings = ProducerSettings(
        acks={Acks.ALL: -1, Acks.LEADER: 1, Acks.NONE: 0}[acks],
        codec=list(Compression).index(compression),
        is_idempotent=idempotent,
    )

    async def work(cluster: "Cluster") -> None:
        await task.write_all(cluster, topic, source, partition, settings, as_json=as_json)

    ask(work, bootstrap)
