import asyncio

import pytest

from ottla.client.errors import ConnectionLost, Refused
from ottla.model.errors import ErrorCode
from ottla.model.types import TopicPartition
from ottla.simulation.clients.workload import Workload, persist
from ottla.simulation.history.history import IDEMPOTENT, History, Sent, Violation
from ottla.simulation.plans.plan import Rates
from ottla.simulation.runs.run import simulate
from ottla.simulation.world.loop import VirtualLoop
from tests.unit.simulation.small import small_plan


def test_clients_do_what_the_plan_says() -> None:
    report = simulate(3, small_plan(3))
    assert report.sent == report.acknowledged > 20
    assert report.read >= 2 * report.sent  # By the consumer or not, and by two audits.


def test_topics_come_and_go() -> None:
    report = simulate(3, small_plan(3, Rates(topic_deletion=5.0)))
    assert report.acknowledged > 0


def run(work) -> object:  # noqa: ANN001
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


def test_whoever_persists_tries_again_after_what_can_pass() -> None:
    failures = [ConnectionLost("gone"), Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)]

    async def attempt() -> str:
        await asyncio.sleep(0)
        if failures:
            raise failures.pop()
        return "done"

    assert run(persist(attempt)) == "done"


def test_an_answer_that_nothing_explains_is_a_violation() -> None:
    async def attempt() -> None:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR)

    with pytest.raises(Violation, match="nothing explains"):
        run(persist(attempt))


def test_a_consumer_past_the_end_is_explained_by_lost_power_alone() -> None:
    def is_explained(rates: Rates, *, is_synced: bool) -> bool:
        plan = small_plan(rates=rates, is_synced=is_synced)
        workload = Workload(plan, History(), lambda name, settings: None)
        return workload._is_explained(Refused(ErrorCode.OFFSET_OUT_OF_RANGE))

    assert is_explained(Rates(power_loss=1.0), is_synced=False)
    assert not is_explained(Rates(power_loss=1.0), is_synced=True)
    assert not is_explained(Rates(kill=1.0), is_synced=False)


def test_a_value_is_not_noted_when_its_topic_was_deleted_while_it_was_sent() -> None:
    history = History()
    workload = Workload(small_plan(), history, lambda name, settings: None)

    class SlowProducer:
        async def send(self, topic: str, _value: bytes, *, partition: int) -> None:
            assert partition == 0
            workload.deleted.add(topic)
            history.forget(topic)

    sent = Sent("producer-0", 0, IDEMPOTENT, TopicPartition("topic-0", 0))
    run(workload._send(SlowProducer(), b"value", sent))  # type: ignore[arg-type]
    assert history.sent == {}
