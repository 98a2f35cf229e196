"""Output of the tools."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.views.terminal import (
    as_json,
    bytes_text,
    escaped,
    plural,
    printable,
    show_json,
    show_table,
)


@given(st.binary(max_size=50))
def test_control_bytes_are_escaped(data: bytes) -> None:
    assert all(character.isprintable() for character in escaped(data).decode())


def test_text_stays_readable() -> None:
    assert escaped("héllo wörld \U0001f600".encode()) == "héllo wörld \U0001f600".encode()
    assert escaped(b"a\tb\nc\x1b[1m\xff") == rb"a\tb\nc\x1b[1m\xff"
    assert printable("right\u202eleft") == r"right\u202eleft"
    assert printable("wide\u3000space\u200bnone") == "wide\u3000space\\u200bnone"


def test_bytes_that_are_not_text_are_base64_in_json() -> None:
    assert as_json("key", b"text") == {"key": "text"}
    assert as_json("key", b"\xff") == {"key_base64": "/w=="}
    assert as_json("key", None) == {"key": None}


def test_a_table_is_not_wrapped_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(["Name", "Count>"], [["x" * 300, 1], ["y", 22]])
    shown = capsys.readouterr().out
    assert "x" * 300 in shown
    assert "\x1b" not in shown


def test_control_characters_in_cells_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(["Name"], [["[red]\x1b[2J"]])
    assert "[red]\\x1b[2J" in capsys.readouterr().out


def test_json_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    show_json({"a": "é\n"})
    assert capsys.readouterr().out == '{"a": "é\\n"}\n'


def test_counts_and_sizes_are_words() -> None:
    assert (plural(1, "record"), plural(12_345, "record")) == ("1 record", "12,345 records")
    assert [bytes_text(size) for size in (0, 1023, 1024, 5 * 2**30, 2**60)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "5.0 GiB",
        "1048576.0 TiB",
    ]
