from types import SimpleNamespace
from typing import Any

import pytest

from ottla.spark.errors import SparkError
from ottla.spark.sink.query import BOOTSTRAP_SETTING, find_bootstrap


def session(where: str | None = None) -> Any:  # noqa: ANN401
    return SimpleNamespace(conf={} if where is None else {BOOTSTRAP_SETTING: where})


def test_an_address_that_is_given_goes_before_that_of_the_session() -> None:
    assert find_bootstrap(session("a:1"), "b:2") == "b:2"
    assert find_bootstrap(session("a:1"), None) == "a:1"


def test_an_address_is_needed() -> None:
    with pytest.raises(SparkError, match=r"give bootstrap=, or set spark\.ottla\.bootstrap"):
        find_bootstrap(session(), None)
