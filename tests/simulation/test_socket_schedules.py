"""The real channels over descriptors that do whatever a kernel may do, seed by seed."""

import os

import pytest

from tests.simulation.socket_schedules import Injected, Schedule, Story

SEEDS = int(os.environ.get("SOCKET_SEEDS", "1000"))
FIRST_SEED = int(os.environ.get("FIRST_SEED", "0"))
PORTIONS = 4


def check(schedule: Schedule) -> None:
    for context in schedule.errors:
        assert isinstance(context.get("exception"), Injected), context
    assert schedule.server.peer_failures == len(schedule.errors)
    for story in schedule.stories:
        check_story(story)


def check_story(story: Story) -> None:
    client, server = story.ends["client"], story.ends["server"]
    for one, other in ((client, server), (server, client)):
        assert one.got == other.told[: len(one.got)], "bytes arrive in order and unaltered"
        assert one.times_closed <= 1
    if not story.is_unhappy:
        assert (client.times_closed, server.times_closed) == (0, 0), "nobody else's misfortune"
    if not client.times_closed:
        assert not server.times_closed, "both sides hear of the end"
        assert (client.got, server.got) == (server.told, client.told), "all of it arrives"
        for peer in (client, server):
            assert peer.channel.unsent == 0
            assert peer.calls_of_sent > 0


@pytest.mark.parametrize("portion", range(PORTIONS))
def test_channels_keep_their_contract_whatever_the_descriptors_do(portion: int) -> None:
    met: set[str] = set()
    for seed in range(FIRST_SEED + portion, FIRST_SEED + SEEDS, PORTIONS):
        schedule = Schedule(seed)
        try:
            schedule.run()
            check(schedule)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        met |= {story.misfortune for story in schedule.stories if story.ends["server"].times_closed}
    assert met == {"reset", "close", "truncate", "rewrite", "raise"}, "every kind was met"
