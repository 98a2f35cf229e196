"""`ottla profile`, as typed."""

import json

from typer.testing import CliRunner, Result

from ottla.cli.app import app


def run(*arguments: str, status: int = 0) -> Result:
    answer = CliRunner().invoke(app, ["profile", *arguments])
    assert answer.exit_code == status, answer.output
    return answer


def test_profiles_are_added_listed_used_shown_and_removed() -> None:
    assert "no profiles yet" in run("list").output
    run("add", "one", "a:1")
    run("add", "two", "b:2,c:3")
    run("use", "two")
    assert json.loads(run("list", "--json").output) == [
        {"profile": "one", "bootstrap.servers": "a:1", "in_use": False},
        {"profile": "two", "bootstrap.servers": "b:2,c:3", "in_use": True},
    ]
    assert "b:2,c:3" in run("show").output
    assert "a:1" in run("show", "one").output
    run("remove", "two")
    assert "no profile is in use" in run("show", status=2).stderr


def test_a_profile_is_replaced_only_when_asked() -> None:
    run("add", "one", "a:1")
    assert "--replace" in run("add", "one", "b:1", status=2).stderr
    run("add", "one", "b:1", "--replace")
    assert "b:1" in run("show", "one").output


def test_a_profile_that_is_not_there_is_named() -> None:
    for command in ("use", "remove", "show"):
        assert "'none'" in run(command, "none", status=2).stderr
