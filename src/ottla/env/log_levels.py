"""Levels of the loggers of this process, by Kafka's names. They last as long as the process.

A logger is named after its module (`ottla.broker.wire.dispatch`) or package; a level applies to all
loggers below that have none of their own. `root` stands for `ottla`, which is above all of them.
"""

import logging
from typing import Final

ROOT: Final = "root"
LEVELS: Final = {
    "TRACE": logging.DEBUG // 2,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
_TOP: Final = "ottla"


def levels() -> dict[str, str]:
    """The level in force of each logger, by name; packages are included."""
    known = sorted(name for name in logging.root.manager.loggerDict if name.startswith(f"{_TOP}."))
    return {name: _level_name(_logger(name).getEffectiveLevel()) for name in (ROOT, *known)}


def set_level(name: str, level: str) -> None:
    """Set the level of a logger that `levels` lists."""
    _logger(name).setLevel(LEVELS[level])


def unset_level(name: str) -> None:
    """Let a logger have the level of the next one above it."""
    assert name != ROOT, "there is none above it"
    _logger(name).setLevel(logging.NOTSET)


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(_TOP if name == ROOT else name)


def _level_name(number: int) -> str:
    """The name of the lowest level that is logged."""
    return next((name for name, each in LEVELS.items() if number <= each), "FATAL")
