"""`ottla profile`: names for clusters, so that a command need not say where its cluster is."""

from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.tasks.client_options import AsJson, failures_told
from ottla.cli.tool import Tool

if TYPE_CHECKING:
    from ottla.cli.tasks.profiles import Profiles

app = Tool(
    "profile",
    help="""Name clusters, and choose the one that commands ask.

    Profiles are in ottla/profiles.toml of the user's configuration directory (XDG_CONFIG_HOME,
    ~/.config). The first of these that is given decides: --bootstrap-server, --profile,
    OTTLA_BOOTSTRAP, OTTLA_PROFILE, the profile in use, 127.0.0.1:9092.

    \b
    Examples:
      ottla profile add staging broker1:9092,broker2:9092
      ottla profile use staging
      ottla topics list --profile staging
    """,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The profile's name.")]


@app.command()
def add(
    name: Name,
    servers: Annotated[
        str, typer.Argument(metavar="HOST:PORT,...", help="Brokers of the cluster.")
    ],
    replace: Annotated[
        bool, typer.Option("--replace", help="Change a profile that is there already.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Add a profile. The first one is in use at once.

    \b
    Examples:
      ottla profile add staging broker1:9092,broker2:9092
      ottla profile add staging broker3:9092 --replace
    """
    from ottla.cli.tasks.client_options import Misuse
    from ottla.cli.tasks.profiles import Profiles

    with failures_told():
        profiles = Profiles.load()
        if name in profiles.named and not replace:
            raise Misuse(f"there is a profile {name!r} already: --replace changes it")
        profiles = profiles.with_profile(name, servers)
        profiles.save()
        _tell(profiles, name, f"Profile {name} saved in {profiles.path}", as_json=as_json)


@app.command("list")
def list_all(as_json: AsJson = False) -> None:
    """List the profiles.

    \b
    Examples:
      ottla profile list
      ottla profile list --json | jq -r '.[].profile'
    """
    from ottla.cli.tasks.profiles import Profiles, chosen_name
    from ottla.cli.views.terminal import say, show_json, show_table

    with failures_told():
        profiles = Profiles.load()
        chosen = chosen_name(profiles)
        if as_json:
            show_json([_as_json(profiles, name) for name in sorted(profiles.named)])
        elif not profiles.named:
            say("There are no profiles yet: add one with 'ottla profile add NAME HOST:PORT'.")
        else:
            rows = [
                [name, profiles.bootstrap_of(name), "yes" if name == chosen else ""]
                for name in sorted(profiles.named)
            ]
            show_table(["Profile", "Bootstrap servers", "In use"], rows)


@app.command()
def use(name: Name, as_json: AsJson = False) -> None:
    """Let commands without --bootstrap-server and --profile ask this cluster.

    \b
    Examples:
      ottla profile use staging
    """
    from ottla.cli.tasks.profiles import Profiles

    with failures_told():
        profiles = Profiles.load().using(name)
        profiles.save()
        _tell(profiles, name, f"Profile {name} is in use", as_json=as_json)


@app.command()
def remove(name: Name, as_json: AsJson = False) -> None:
    """Remove a profile.

    \b
    Examples:
      ottla profile remove staging
    """
    from ottla.cli.tasks.profiles import Profiles
    from ottla.cli.views.terminal import say, show_json

    with failures_told():
        Profiles.load().without(name).save()
        if as_json:
            show_json({"profile": name, "removed": True})
        else:
            say(f"Profile {name} removed.")


@app.command()
def show(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Default: the one in use.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a profile, and the file that it is in.

    \b
    Examples:
      ottla profile show
      ottla profile show staging --json | jq -r '."bootstrap.servers"'
    """
    from ottla.cli.tasks.client_options import Misuse
    from ottla.cli.tasks.profiles import Profiles, chosen_name

    with failures_told():
        profiles = Profiles.load()
        wanted = name or chosen_name(profiles)
        if wanted is None:
            raise Misuse("no profile is in use: commands ask 127.0.0.1:9092")
        profiles.get(wanted)
        _tell(profiles, wanted, f"Profile {wanted} in {profiles.path}", as_json=as_json)


def _tell(profiles: "Profiles", name: str, sentence: str, *, as_json: bool) -> None:
    from ottla.cli.views.terminal import say, show_json

    if as_json:
        show_json(_as_json(profiles, name))
    else:
        say(f"{sentence}: {profiles.bootstrap_of(name)}")


def _as_json(profiles: "Profiles", name: str) -> dict[str, object]:
    from ottla.cli.tasks.profiles import chosen_name

    return {"profile": name, **profiles.get(name), "in_use": name == chosen_name(profiles)}
