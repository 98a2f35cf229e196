from dataclasses import replace

import pytest

from ottla.simulation.clients.session_reader import SessionReader
from ottla.simulation.plans.plan import Rates
from ottla.simulation.runs.run import simulate
from tests.unit.simulation.small import small_plan


@pytest.mark.parametrize("slots", ["0", "1", "1000"])
@pytest.mark.parametrize("rates", [Rates(), Rates(reset=5.0, kill=1.0)])
@pytest.mark.parametrize("brokers", [1, 3])
def test_a_session_gives_every_record_in_turn(
    brokers: int, slots: str, rates: Rates, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    request = SessionReader._request

    async def counted(self: SessionReader, session, positions):  # noqa: ANN001, ANN202
        made = await request(self, session, positions)
        sizes.append(sum(len(topic.partitions) for topic in made.topics))
        return made

    monkeypatch.setattr(SessionReader, "_request", counted)
    plan = small_plan(3, rates, brokers=brokers)
    plan = replace(plan, consumers=2, session_consumers=2)
    settings = plan.settings | {"max.incremental.fetch.session.cache.slots": slots}
    report = simulate(3, replace(plan, settings=settings))
    audits = 2 if brokers == 1 else 1
    assert report.read >= (audits + 1) * report.acknowledged, "and most of it by consumers"
    assert max(sizes) == plan.partitions if brokers == 1 else max(sizes) >= 1
    if slots == "1000" and brokers == 1:  # Of three, a leader may have a single partition.
        assert min(sizes) < max(sizes), "later fetches name only what has changed"
