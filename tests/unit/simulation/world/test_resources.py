from ottla.simulation.world.resources import SLACK, Resources


def test_more_than_a_fresh_process_and_the_slack_is_an_excess_that_is_named() -> None:
    fresh = Resources(tasks=5, timers=5, connections=5, orphaned_files=0, request_bytes=0)
    assert not fresh.excess(fresh)
    grown = Resources(
        tasks=5 + SLACK["tasks"],
        timers=6 + SLACK["timers"],
        connections=5,
        orphaned_files=1,
        request_bytes=0,
    )
    assert grown.excess(fresh) == [
        f"{6 + SLACK['timers']} timers, 5 when fresh",
        "1 orphaned_files, 0 when fresh",
    ]
