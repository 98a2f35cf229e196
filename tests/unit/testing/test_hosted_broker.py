import asyncio
from pathlib import Path

import pytest

from ottla.broker.settings.error import SettingsError
from ottla.env.loop import DispatchLoop
from ottla.storage.identity import DirectoryRefused
from ottla.testing.faults import FaultOrder
from ottla.testing.hosted_broker import HostedBroker, run_on


def run(work) -> None:  # noqa: ANN001
    with asyncio.Runner(loop_factory=DispatchLoop) as runner:
        runner.run(work)


def test_a_restarted_broker_has_the_same_address(tmp_path: Path) -> None:
    async def work() -> None:
        hosted = HostedBroker(str(tmp_path), {}, 0)
        first = await hosted.start()
        hosted.inject(FaultOrder("drop", "Metadata", times=3))
        hosted.clear_faults()
        assert hosted.drop_connections() == 0
        await hosted.stop(cleanly=True)
        assert await hosted.start() == first
        await hosted.stop(cleanly=False)
        await hosted.stop(cleanly=False)

    run(work())


def test_a_failed_start_can_be_repeated(tmp_path: Path) -> None:
    async def work() -> None:
        with pytest.raises(SettingsError):
            await HostedBroker(str(tmp_path), {"no.such.setting": "1"}, 0).start()
        hosted = HostedBroker(str(tmp_path), {}, 0)
        await hosted.start()
        second = HostedBroker(str(tmp_path), {}, 0)
        with pytest.raises(DirectoryRefused, match="in use"):
            await second.start()  # One directory, one broker.
        await hosted.stop(cleanly=True)
        await second.start()
        await second.stop(cleanly=True)

    run(work())


def test_a_loop_that_is_stopped_leaves_no_task() -> None:
    loop = DispatchLoop()
    ended: list[str] = []

    async def wait_for_ever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    def ready() -> None:
        ended.append("ready")
        loop.call_later(0.01, loop.stop)

    task = loop.create_task(wait_for_ever())
    run_on(loop, ready)
    assert ended == ["ready", "cancelled"]
    assert task.cancelled()
    assert loop.is_closed()
