"""Makes a failing run smaller: what it fails without is not its cause.

Kinds of faults and of clients are left out one by one, then the time is cut, as long as the run
still breaks some promise. A smaller plan is another run: the failure it ends with may differ.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ottla.simulation.plans.plan import CLIENTS, Plan, without
from ottla.simulation.runs.run import simulate
from ottla.simulation.runs.running import Failure

SECONDS_MIN = 1.0


@dataclass(frozen=True, slots=True)
class Shrunk:
    plan: Plan
    left_out: tuple[str, ...]
    failure: Failure

    @property
    def command(self) -> str:
        """How to see it again."""
        return replay_command(self.plan, self.left_out)


def replay_command(plan: Plan, left_out: tuple[str, ...] = ()) -> str:
    options = "".join(f" --without {name}" for name in left_out)
    return (
        f"ottla simulate --brokers {plan.brokers} --seed {plan.seed}{options} "
        f"--seconds {plan.seconds:g}"
    )


def shrink(
    failure: Failure,
    plan: Plan,
    run: Callable[[Plan], Failure | None] | None = None,
) -> Shrunk:
    """`run` gives the failure that a plan ends with, if it does."""
    fails = run or _run
    smallest = Shrunk(plan, (), failure)
    for name in (*plan.happening(), *CLIENTS):
        smaller = without(smallest.plan, (name,))
        if smaller != smallest.plan and (found := fails(smaller)) is not None:
            smallest = Shrunk(smaller, (*smallest.left_out, name), found)
    while (seconds := smallest.plan.seconds / 2) >= SECONDS_MIN:
        smaller = replace(smallest.plan, seconds=seconds)
        if (found := fails(smaller)) is None:
            break
        smallest = replace(smallest, plan=smaller, failure=found)
    return smallest


def _run(plan: Plan) -> Failure | None:
    try:
        simulate(plan.seed, plan)
    except Failure as failure:
        return failure
    return None
