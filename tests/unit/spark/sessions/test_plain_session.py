from pathlib import Path

import pytest

from ottla.spark.sessions.plain_session import tell_once
from ottla.spark.sessions.session import FAST


@pytest.fixture
def plain(tmp_path: Path) -> dict[str, str]:
    """The environment that Spark gives to the processes of a session of the user's own."""
    (tmp_path / "other").mkdir()
    return {"SPARK_LOCAL_DIRS": f"{tmp_path},{tmp_path / 'other'}"}


def test_a_plain_session_is_told_once_what_it_lacks(
    plain: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    tell_once(plain)
    tell_once(plain)
    (told,) = caplog.messages
    for name, value in FAST.items():
        assert f"{name}={value}" in told


def test_the_next_application_is_told_again(
    plain: dict[str, str], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    tell_once(plain)
    tell_once({"SPARK_LOCAL_DIRS": str(tmp_path / "other")})
    assert len(caplog.messages) == 2


@pytest.mark.parametrize(
    "lines",
    [
        {"OTTLA_SPARK_FILTER_PUSHDOWN": "false"},  # Of our own session, whatever it says.
        {"PYTHON_UNIX_DOMAIN_ENABLED": "true"},
    ],
)
def test_a_session_that_has_it_is_told_nothing(
    lines: dict[str, str], plain: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    tell_once(plain | lines)
    assert not caplog.messages


def test_outside_of_spark_nothing_is_told(caplog: pytest.LogCaptureFixture) -> None:
    tell_once({})
    assert not caplog.messages
