"""Encoding and decoding of dead letter headers."""

from ottla.client.message import Message
from ottla.consumer.dead_letters import (
    PREFIX,
    STACKTRACE,
    STACKTRACE_CHARACTERS_MAX,
    headers_for,
    own_headers,
    read_dead_letter,
)

RECORD = Message("orders", 3, 42, 1000, False, b"k", b"v", (("own", b"1"), ("none", None)))


def failure() -> Exception:
    try:
        raise ValueError("no such ☃ customer")
    except ValueError as error:
        return error


def dead(record: Message = RECORD, error: Exception | None = None) -> Message:
    headers = headers_for(record, error or failure(), group="billing", handler="app.handle")
    return record._replace(topic="orders.dlq", partition=0, offset=0, headers=tuple(headers))


def test_dead_letter_headers_round_trip() -> None:
    letter = read_dead_letter(dead())
    assert letter[:6] == (
        "orders",
        3,
        42,
        "billing",
        "builtins.ValueError",
        "no such ☃ customer",
    )
    assert "raise ValueError" in (letter.stacktrace or "")
    assert letter.headers == RECORD.headers


def test_the_names_are_those_of_kafka_connect() -> None:
    named = dict(dead().headers)
    assert named["__connect.errors.topic"] == b"orders"
    assert named["__connect.errors.partition"] == b"3"
    assert named["__connect.errors.offset"] == b"42"
    assert named["__connect.errors.connector.name"] == b"billing"
    assert named["__connect.errors.class.name"] == b"app.handle"
    assert named["__connect.errors.exception.class.name"] == b"builtins.ValueError"
    assert named["__connect.errors.exception.message"] == "no such ☃ customer".encode()
    assert len([name for name in named if name.startswith(PREFIX)]) == 10


def test_a_second_failure_replaces_the_headers_of_the_first() -> None:
    again = dead(dead()._replace(topic="orders", offset=77))
    assert len([name for name, _ in again.headers if name == "__connect.errors.offset"]) == 1
    assert read_dead_letter(again).offset == 77


def test_a_long_stacktrace_keeps_its_end() -> None:
    error = ValueError("x" * 100_000 + "end")
    trace = dict(dead(error=error).headers)[STACKTRACE]
    assert trace is not None
    assert len(trace) <= STACKTRACE_CHARACTERS_MAX
    assert trace.rstrip().endswith(b"end")


def test_a_record_without_connect_headers_has_no_origin() -> None:
    letter = read_dead_letter(RECORD)
    assert letter[:7] == (None,) * 7
    assert letter.headers == RECORD.headers


def test_headers_that_are_not_numbers_are_ignored() -> None:
    odd = RECORD._replace(headers=((PREFIX + "offset", b"-x"), (PREFIX + "partition", b"\xff")))
    assert read_dead_letter(odd).offset is None
    assert read_dead_letter(odd).partition is None
    assert own_headers(odd.headers) == ()
