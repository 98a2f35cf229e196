"""Levels of loggers by Kafka's names."""

import logging
from collections.abc import Iterator

import pytest

from ottla.env.log_levels import LEVELS, ROOT, levels, set_level, unset_level

PACKAGE = "ottla.levels_tested"
NAME = f"{PACKAGE}.part"


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = logging.getLogger("ottla").level
    yield
    logging.getLogger("ottla").setLevel(before)
    for name in (PACKAGE, NAME):
        logging.getLogger(name).setLevel(logging.NOTSET)


def test_a_package_and_its_modules_are_listed_with_the_level_in_force() -> None:
    logging.getLogger(NAME)
    set_level(ROOT, "ERROR")
    found = levels()
    assert (found[ROOT], found[PACKAGE], found[NAME]) == ("ERROR", "ERROR", "ERROR")
    assert next(iter(found)) == ROOT
    assert "ottla" not in found


def test_a_level_applies_to_all_loggers_below_that_have_none() -> None:
    part = logging.getLogger(NAME)
    set_level(ROOT, "WARN")
    set_level(PACKAGE, "DEBUG")
    assert part.isEnabledFor(logging.DEBUG)
    assert levels()[NAME] == "DEBUG"
    set_level(NAME, "ERROR")
    assert not part.isEnabledFor(logging.WARNING)
    unset_level(NAME)
    assert levels()[NAME] == "DEBUG"
    unset_level(PACKAGE)
    assert (levels()[NAME], part.isEnabledFor(logging.INFO)) == ("WARN", False)


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_of_kafka_is_told_as_it_was_set(level: str) -> None:
    logging.getLogger(NAME)
    set_level(NAME, level)
    assert levels()[NAME] == level


@pytest.mark.parametrize(("number", "name"), [(1, "TRACE"), (15, "INFO"), (99, "FATAL")])
def test_a_level_without_a_name_is_the_next_that_is_logged(number: int, name: str) -> None:
    logging.getLogger(NAME).setLevel(number)
    assert levels()[NAME] == name
