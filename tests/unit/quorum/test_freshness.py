"""As of when a node knows all that is committed."""

from ottla.protocol.messages import fetch
from ottla.quorum.freshness import known_at
from ottla.quorum.messages import Leadership, fetch_response
from tests.simulation.quorum_node import Entry
from tests.unit.quorum.scene import Stage, key

LEAD = Leadership(5, key(2).id)


def following() -> Stage:
    stage = Stage(epochs=[1, 1, 1])
    stage.led_by(2, 5)
    return stage


def answer(stage: Stage, high_watermark: int, **fields: object) -> None:
    part = fetch.PartitionData(0, 0, high_watermark)
    for name, value in fields.items():
        setattr(part, name, value)
    stage.answer(stage.requests(fetch.Request, to=2)[0], fetch_response(LEAD, None, part))


def known(stage: Stage) -> int | None:
    return known_at(stage.quorum, stage.now)


def test_a_follower_knows_what_was_committed_when_it_asked() -> None:
    stage = following()
    asked_at = stage.now
    assert known(stage) is None
    stage.wait(400)
    answer(stage, 3)
    assert known(stage) == asked_at
    stage.wait(300)
    answer(stage, 3)
    assert known(stage) == asked_at + 400


def test_a_follower_that_is_behind_knows_it_once_it_has_the_rest() -> None:
    stage = following()
    answer(stage, 3)
    before = known(stage)
    stage.wait(100)
    answer(stage, 3)
    asked_at = stage.now
    stage.wait(100)
    answer(stage, 4, records=b"one more")
    assert known(stage) == before
    stage.log.entries.append(Entry(5, None))
    stage.obey(stage.quorum.appended(stage.now))
    assert known(stage) == asked_at


def test_a_leader_that_does_not_say_what_is_committed_teaches_nothing() -> None:
    stage = following()
    answer(stage, -1)
    assert known(stage) is None


def test_a_follower_whose_log_parts_from_the_leaders_does_not_know_how_far_it_is_behind() -> None:
    stage = following()
    answer(stage, 2)
    assert known(stage) is not None
    stage.wait(100)
    answer(stage, 9, diverging_epoch=fetch.EpochEndOffset(1, 2))
    assert known(stage) is None
    answer(stage, 2)
    assert known(stage) == stage.now


def test_a_leader_knows_that_nobody_decided_anything_while_a_majority_came_back_to_it() -> None:
    stage = Stage()
    stage.elect()
    assert known(stage) is None, "nothing of its epoch is committed"
    end = stage.log.end_offset
    stage.fetch(2, end, stage.quorum.state.epoch)
    since = stage.now
    assert known(stage) == since
    stage.wait(400)
    stage.fetch(2, end, stage.quorum.state.epoch)
    # It may have waited for long; what is sure is that it came after the answer to the one before.
    assert known(stage) == since
    stage.wait(400)
    stage.fetch(2, end, stage.quorum.state.epoch)
    assert known(stage) == since + 400


def test_a_single_voter_always_knows() -> None:
    stage = Stage(among=[1])
    stage.start()
    stage.wait(5000)
    assert known(stage) == stage.now


def test_who_follows_nobody_and_leads_nobody_does_not_know() -> None:
    stage = following()
    answer(stage, 3)
    stage.wait(3000)
    assert known(stage) is None
