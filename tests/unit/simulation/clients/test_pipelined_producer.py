from collections.abc import Callable
from dataclasses import replace

import pytest

from ottla.simulation.clients.pipelined_producer import IN_FLIGHT_MAX, Package, PipelinedProducer
from ottla.simulation.history.history import PIPELINED
from ottla.simulation.plans.plan import Rates
from ottla.simulation.runs.run import simulate
from ottla.simulation.world.loop import MILLISECOND
from ottla.storage.producer_state import Duplicate, Producers
from tests.unit.simulation.small import small_plan


def test_five_batches_are_in_flight_and_each_is_written_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: set[int] = set()
    attempt = PipelinedProducer._attempt

    async def counted(self, place, packages: list[Package]):  # noqa: ANN001, ANN202
        sizes.add(len(packages))
        return await attempt(self, place, packages)

    monkeypatch.setattr(PipelinedProducer, "_attempt", counted)
    report = simulate(3, pipelined(Rates(reset=5.0)))
    assert report.acknowledged == report.sent > 50
    assert max(sizes) == IN_FLIGHT_MAX


def test_batches_whose_answers_were_lost_are_known_to_the_broker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    older: list[Duplicate] = []
    monkeypatch.setattr(Producers, "check", noting(Producers.check, older))
    simulate(3, pipelined(Rates(reset=10.0)))
    assert older, "a duplicate that is not the last batch"


def noting(check: Callable[..., None], older: list[Duplicate]) -> Callable[..., None]:
    def check_and_note(self: Producers, batch, *, is_client: bool) -> None:  # noqa: ANN001
        try:
            check(self, batch, is_client=is_client)
        except Duplicate as duplicate:
            if self.by_id[batch.producer_id].batches[-1].last_offset > duplicate.base_offset:
                older.append(duplicate)
            raise

    return check_and_note


def pipelined(rates: Rates):  # noqa: ANN201
    return replace(
        small_plan(3, rates),
        seconds=3.0,
        partitions=1,
        producers=(PIPELINED,),
        records_per_second=200.0,
        delay_ns_mean=10 * MILLISECOND,
    )
