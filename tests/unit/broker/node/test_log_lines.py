"""How the broker's log reads."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from ottla.broker.node.log_lines import configure_logging, spelled_out


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger("ottla")
    before = (root.handlers[:], root.level, root.propagate, logging.raiseExceptions)
    yield
    root.handlers[:], root.level, root.propagate, logging.raiseExceptions = before


def logged(form: str, level: str = "info") -> tuple[logging.Logger, io.StringIO]:
    stream = io.StringIO()
    configure_logging(level, form, stream)
    return logging.getLogger("ottla.broker.node.broker"), stream


def test_a_line_has_time_level_place_and_message() -> None:
    logger, stream = logged("text")
    logger.info("listening on %s", "127.0.0.1:9092")
    moment, level, where, message = stream.getvalue().split(" ", 3)
    assert moment.endswith("Z")
    assert moment[10] == "T"
    assert (level, where) == ("INFO", "broker.node.broker:")
    assert message == "listening on 127.0.0.1:9092\n"


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_event_is_one_line_whatever_a_client_sent(form: str) -> None:
    logger, stream = logged(form)
    logger.warning("client %s", "a\r\nINFO forged\x1b[2J\u2028\x00")
    try:
        raise ValueError("bad\nthing")
    except ValueError:
        logger.exception("failed")
    written = stream.getvalue()
    assert len(written.splitlines()) == 2
    assert all(c.isprintable() or c == "\n" for c in written)


def test_json_keeps_what_was_said() -> None:
    logger, stream = logged("json")
    logger.error("a\nb %s", 1)
    event = json.loads(stream.getvalue())
    assert (event["level"], event["logger"]) == ("error", "ottla.broker.node.broker")
    assert event["message"] == "a\nb 1"


def test_less_severe_lines_are_left_out() -> None:
    logger, stream = logged("text", "warning")
    logger.info("no")
    logger.warning("yes")
    assert stream.getvalue().count("\n") == 1


def test_spelling_out_leaves_plain_text_alone() -> None:
    assert spelled_out("größe 10") == "größe 10"
    assert spelled_out("a\tb") == "a\\tb"
