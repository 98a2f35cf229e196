"""Which cluster a command asks."""

import pytest
from typer.testing import CliRunner

from ottla.cli.app import app
from ottla.cli.tasks.bootstrap_option import BOOTSTRAP_DEFAULT, PROFILE, given_bootstrap
from ottla.cli.tasks.profiles import Profiles


@pytest.fixture
def profiles() -> None:
    for name, port in (("one", 1), ("two", 2)):
        Profiles.load().with_profile(name, f"127.0.0.1:{port}").save()


def test_without_anything_it_is_the_default() -> None:
    assert given_bootstrap({}) == BOOTSTRAP_DEFAULT


def test_the_order_of_the_sources(profiles: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert given_bootstrap({}) == "127.0.0.1:1", "the profile in use"
    monkeypatch.setenv("OTTLA_PROFILE", "two")
    assert given_bootstrap({}) == "127.0.0.1:2"
    monkeypatch.setenv("OTTLA_BOOTSTRAP", "127.0.0.1:3")
    assert given_bootstrap({}) == "127.0.0.1:3"
    assert given_bootstrap({PROFILE: "one"}) == "127.0.0.1:1"


@pytest.mark.parametrize(
    ("arguments", "port"),
    [
        (["topics", "list"], 1),
        (["topics", "list", "--profile", "two"], 2),
        (["--profile", "two", "topics", "list"], 2),
        (["topics", "--profile", "two", "list"], 2),
        (["brokers", "--profile", "two"], 2),
        (["-b", "127.0.0.1:3", "topics", "list", "--profile", "two"], 3),
    ],
)
def test_a_profile_names_the_cluster(profiles: None, arguments: list[str], port: int) -> None:
    answer = CliRunner().invoke(app, arguments)
    assert answer.exit_code == 1
    assert f"127.0.0.1:{port}" in answer.stderr


def test_an_unknown_profile_is_a_usage_error(profiles: None) -> None:
    answer = CliRunner().invoke(app, ["topics", "list", "--profile", "three"])
    assert answer.exit_code == 2
    assert "there is no profile 'three'; there are one, two" in answer.stderr
