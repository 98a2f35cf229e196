"""Implementation of `ottla partitions elect`."""

from collections.abc import Sequence

from ottla.cli.tasks.partition_names import named_partitions
from ottla.cli.views.terminal import note, plural, say, show_json
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.client.reassignments import Election, Reassignments
from ottla.model.types import TopicPartition

NAMES_MAX = 10


async def elect(cluster: Cluster, kind: Election, topics: Sequence[str], *, as_json: bool) -> None:
    """Elect leaders; a partition that cannot have the one wanted fails the command at its end."""
    places = sorted(await named_partitions(cluster, topics)) if topics else None
    elected, refused = await Reassignments(cluster).elect(kind, places)
    if as_json:
        show_json(
            {
                "elected": [{"topic": name, "partition": index} for name, index in elected],
                "refused": [
                    {"topic": name, "partition": index, "error": failure.code.name}
                    for (name, index), failure in refused.items()
                ],
            }
        )
    elif elected:
        say(f"{plural(len(elected), 'partition')} got another leader: {_names(elected)}.")
    elif not refused:
        say("Every partition has its leader already.")
    if refused:
        for place, failure in list(refused.items())[:NAMES_MAX]:
            note(f"{place}: {failure}")
        raise ClientError(f"{plural(len(refused), 'partition')} could not get the leader asked for")


def _names(places: Sequence[TopicPartition]) -> str:
    return ", ".join(map(str, places[:NAMES_MAX])) + (" ..." if len(places) > NAMES_MAX else "")
