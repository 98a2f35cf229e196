"""`ottla brokers`: list, drain and unregister brokers."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.tasks.bootstrap_option import BootstrapBefore, Profile, given_bootstrap
from ottla.cli.tasks.client_options import (
    BOOTSTRAP_DEFAULT,
    AsJson,
    Bootstrap,
    Misuse,
    ask,
    failures_told,
)
from ottla.cli.tool import Tool

if TYPE_CHECKING:
    from ottla.client.cluster import Cluster

app = Tool("brokers")

Id = Annotated[int, typer.Argument(metavar="ID", min=0, help="The broker's id.")]


@app.callback(invoke_without_command=True)
def brokers(
    context: typer.Context,
    bootstrap: BootstrapBefore = None,
    profile: Profile = None,  # noqa: ARG001  Its callback remembers it.
    as_json: AsJson = False,
) -> None:
    """List brokers, drain one of its replicas, forget one that is gone.

    \b
    Examples:
      ottla brokers
      ottla brokers drain 3 --wait
      ottla brokers undrain 3
    """
    if context.invoked_subcommand is None:
        list_all(bootstrap or given_bootstrap(context.meta), as_json)
    elif as_json:
        with failures_told():
            raise Misuse(
                f"--json goes behind the command: ottla brokers {context.invoked_subcommand} --json"
            )


@app.command("list")
def list_all(bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: AsJson = False) -> None:
    """Show each broker: where it is, what it leads and keeps, how full its disks are.

    A broker that is fenced does not serve: it has stopped, or the controller does not hear it.

    \b
    Examples:
      ottla brokers list
      ottla brokers list --json | jq '.[] | select(.state != "running") | .id'
    """
    from ottla.cli.views.broker_view import list_brokers

    ask(lambda cluster: list_brokers(cluster, as_json=as_json), bootstrap)


@app.command()
def drain(
    node: Id,
    wait: Annotated[
        bool, typer.Option("--wait", "-w", help="Until nothing is left on it, with progress.")
    ] = False,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Move all replicas off a broker, and place no others on it.

    The controller moves a few partitions at a time (ottla.rebalance.moves.max). The broker may be
    down. Without --wait it ends at once; the same command with --wait shows how far it is.

    \b
    Examples:
      ottla brokers drain 3
      ottla brokers drain 3 --wait && ottla brokers list
    """
    from ottla.cli.tasks.drain import drain_broker

    ask(lambda cluster: drain_broker(cluster, node, wait=wait, as_json=as_json), bootstrap)


@app.command()
def undrain(node: Id, bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: AsJson = False) -> None:
    """Let a broker have replicas again. The controller evens them out by itself.

    \b
    Examples:
      ottla brokers undrain 3
    """
    from ottla.cli.tasks.drain import undrain_broker

    ask(lambda cluster: undrain_broker(cluster, node, as_json=as_json), bootstrap)


@app.command()
def unregister(
    node: Id,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Although partitions still name it as a replica.")
    ] = False,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Have the cluster forget a broker that will not come back. On a terminal it asks first.

    It has to be stopped, and drained; --force leaves its partitions with a replica less until the
    controller has made another.

    \b
    Examples:
      ottla brokers drain 3 --wait && ottla brokers unregister 3
    """
    from ottla.cli.tasks.drain import unregister_broker

    if not yes and sys.stdin.isatty():
        typer.confirm(f"Forget broker {node}?", abort=True)

    async def work(cluster: "Cluster") -> None:
        await unregister_broker(cluster, node, force=force, as_json=as_json)

    ask(work, bootstrap)
