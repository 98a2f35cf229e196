from dataclasses import replace

import pytest

from ottla.simulation.plan import Rates
from ottla.simulation.run import simulate
from ottla.simulation.session_reader import SessionReader
from tests.unit.simulation.small import small_plan


@pytest.mark.parametrize("slots", ["0", "1", "1000"])
@pytest.mark.parametrize("rates", [Rates(), Rates(reset=5.0, kill=1.0)])
def test_a_session_gives_every_record_in_turn(
    slots: str, rates: Rates, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    request = SessionReader._request

    async def counted(self: SessionReader, positions):  # noqa: ANN001, ANN202
        made = await request(self, positions)
        sizes.append(sum(len(topic.partitions) for topic in made.topics))
        return made

    monkeypatch.setattr(SessionReader, "_request", counted)
    plan = small_plan(3, rates)
    plan = replace(plan, consumers=2, session_consumers=2)
    settings = plan.settings | {"max.incremental.fetch.session.cache.slots": slots}
    report = simulate(3, replace(plan, settings=settings))
    assert report.read >= 3 * report.acknowledged, "by two audits, and most of it by consumers"
    assert max(sizes) == plan.partitions
    if slots == "1000":
        assert min(sizes) < plan.partitions, "later fetches name only what has changed"
