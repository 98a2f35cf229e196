"""Errors become one sentence and an exit status."""

import os
import sys

import pytest
import typer

from ottla.cli.tasks.client_options import Misuse, Trouble, ask, failures_told, parse_pairs
from ottla.client.errors import Refused
from ottla.model.errors import Damaged, ErrorCode


@pytest.mark.parametrize(
    ("failure", "status", "sentence"),
    [
        (Misuse("give a key"), 2, "give a key"),
        (Refused(ErrorCode.INVALID_CONFIG, "no such config"), 1, "no such config"),
        (Damaged("a.log", 5, "torn"), 1, "a.log is damaged at byte 5: torn"),
        (FileNotFoundError(2, "No such file or directory", "x"), 1, "x: no such file or directory"),
        (Misuse("bad \x1b[2J"), 2, "bad \\x1b[2J"),
    ],
)
def test_a_failure_is_printed_as_a_sentence(
    failure: Exception, status: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended, failures_told():
        raise failure
    assert ended.value.exit_code == status
    assert capsys.readouterr().err == f"ottla: {sentence}\n"


def test_an_internal_error_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError), failures_told():
        raise ZeroDivisionError


def test_ctrl_c_prints_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended, failures_told():
        raise KeyboardInterrupt
    assert ended.value.exit_code == 130
    assert capsys.readouterr().err == ""


def test_a_closed_pipe_ends_the_command_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        with pytest.raises(typer.Exit) as ended, failures_told():
            output.write("x")
    assert ended.value.exit_code == 0


def test_pairs_may_hold_equals_signs() -> None:
    assert parse_pairs(["a=1", "b=x=y", "c="], "--set") == {"a": "1", "b": "x=y", "c": ""}
    with pytest.raises(Misuse, match="--set 'a': expected name=value"):
        parse_pairs(["a"], "--set")
    with pytest.raises(Misuse):
        parse_pairs(["=1"], "--set")


def test_a_bad_address_is_a_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    async def never(cluster: object) -> None:
        raise AssertionError

    with pytest.raises(typer.Exit) as ended:
        ask(never, "host:port")
    assert ended.value.exit_code == 2
    assert "host:port" in capsys.readouterr().err


def test_lasting_trouble_is_reported_with_a_limited_rate(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = 0
    trouble = Trouble(lambda: now)
    told: list[int] = []
    for now in (*range(0, 25_000, 500), *range(60_000, 63_000, 500)):
        trouble.noticed(Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        if capsys.readouterr().err:
            told.append(now)
    assert told == [1_500, 11_500, 21_500, 61_500]


def test_short_trouble_is_not_reported(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0
    trouble = Trouble(lambda: now)
    for now in range(0, 100_000, 9_000):  # noqa: B007
        trouble.noticed(Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert capsys.readouterr().err == ""
