"""Partitions as a person names them."""

import pytest

from ottla.cli.tasks.client_options import Misuse
from ottla.cli.tasks.partition_names import named_partitions, parse_names
from ottla.client.metadata import UnknownPartition
from tests.unit.cli.cluster_world import ClusterWorld


def test_names_of_one_topic_add_up() -> None:
    assert parse_names(["t:2,0", "t:1", "u"]) == {"t": {0, 1, 2}, "u": None}
    assert parse_names(["t", "t:1"]) == parse_names(["t:1", "t"]) == {"t": None}


@pytest.mark.parametrize("text", ["t:", "t:a", "t:1,", "t:-1"])
def test_numbers_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(Misuse, match="orders:0,2"):
        parse_names([text])


def test_only_named_partitions_are_found_and_an_unknown_one_is_refused() -> None:
    world = ClusterWorld()

    async def work() -> None:
        cluster = world.cluster()
        assert [p.partition for p in await named_partitions(cluster, ["t:2,0"])] == [0, 2]
        assert len(await named_partitions(cluster, ["t"])) == 3
        with pytest.raises(UnknownPartition, match="no partition 3: it has 3"):
            await named_partitions(cluster, ["t:3"])

    world.run(work)
