import os

import pytest

from ottla.spark.sessions.session import (
    SETTINGS,
    _few_threads,
    setting_name,
    shuffle_settings,
)


def test_settings_are_named_as_spark_does() -> None:
    assert setting_name("spark_ui_enabled") == "spark.ui.enabled"
    assert setting_name("spark.sql.execution.arrow.maxBytesPerBatch") == (
        "spark.sql.execution.arrow.maxBytesPerBatch"
    )


def test_counting_of_row_bytes_is_disabled() -> None:
    """Only exactly this value ends it; tests/spark sees the session that it makes."""
    assert SETTINGS["spark.sql.execution.arrow.maxBytesPerBatch"] == str(2**31 - 1)


@pytest.mark.parametrize("given", [None, "3"])
def test_planning_has_one_thread_for_algebra_unless_told_otherwise(
    given: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if given is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", given)
    with _few_threads():
        assert os.environ["OMP_NUM_THREADS"] == (given or "1")
    assert os.environ.get("OMP_NUM_THREADS") == given, "the program's own threads are its own"


@pytest.mark.parametrize(
    ("master", "partitions"),
    [
        ("local", "1"),
        ("local[3]", "3"),
        ("local[3,2]", "3"),
        ("local[*]", str(os.cpu_count())),
        ("spark://host:7077", None),
    ],
)
def test_a_shuffle_has_a_partition_per_core_of_this_machine(
    master: str, partitions: str | None
) -> None:
    assert shuffle_settings(master).get("spark.sql.shuffle.partitions") == partitions
