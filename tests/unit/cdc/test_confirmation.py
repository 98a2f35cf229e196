"""Confirmation: commits in order, when all of their records are acknowledged."""

import asyncio

import pytest

from ottla.cdc.confirmation import Confirmation


def test_a_commit_is_confirmed_after_its_records_and_after_those_before_it() -> None:
    async def story() -> None:
        confirmation = Confirmation()
        first, second, third = (asyncio.get_running_loop().create_future() for _ in range(3))
        confirmation.committed(10, [first, second])
        confirmation.committed(20, [third])
        confirmation.committed(30, [])
        third.set_result(None)
        first.set_result(None)
        assert confirmation.advance() == 0, "one of its records is under way"
        confirmation.nothing_before(99)
        assert confirmation.lsn == 0, "something waits"
        second.set_result(None)
        assert confirmation.advance() == 30
        assert confirmation.is_empty
        confirmation.nothing_before(99)
        confirmation.nothing_before(50)
        assert confirmation.lsn == 99, "it never goes back"

    asyncio.run(story())


def test_a_failed_record_is_raised() -> None:
    async def story() -> None:
        confirmation = Confirmation()
        failed = asyncio.get_running_loop().create_future()
        failed.set_exception(ValueError("too large"))
        confirmation.committed(10, [failed])
        with pytest.raises(ValueError, match="too large"):
            confirmation.advance()
        assert confirmation.lsn == 0

    asyncio.run(story())
