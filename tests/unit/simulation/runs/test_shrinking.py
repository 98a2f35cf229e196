from dataclasses import replace

from ottla.simulation.history.history import Violation
from ottla.simulation.plans.plan import Plan, Rates, without
from ottla.simulation.runs.running import Failure
from ottla.simulation.runs.shrinking import shrink
from ottla.simulation.world.trace import Trace
from tests.unit.simulation.small import small_cluster

RATES = Rates(kill=1.0, pause=1.0, reset=1.0)


def failure(plan: Plan) -> Failure:
    return Failure(plan, Violation("it failed"), Trace(lambda: 0), "again")


def test_what_it_fails_without_is_left_out_and_the_rest_is_kept() -> None:
    plan = replace(small_cluster(7, RATES), seconds=8.0)

    def run(smaller: Plan) -> Failure | None:
        needed = smaller.rates.kill and smaller.rates.reset and smaller.seconds >= 3
        return failure(smaller) if needed else None

    found = shrink(failure(plan), plan, run)
    assert found.left_out == ("pause", "consumers")
    assert found.plan.seconds == 4.0
    assert found.command == (
        "ottla simulate --brokers 3 --seed 7 --without pause --without consumers --seconds 4"
    )
    assert replace(without(plan, found.left_out), seconds=4.0) == found.plan


def test_a_failure_that_needs_everything_stays_as_it_is() -> None:
    plan = small_cluster(7, RATES)
    found = shrink(failure(plan), plan, lambda _: None)
    assert (found.plan, found.left_out) == (plan, ())
