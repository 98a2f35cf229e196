import os
import signal
import socket
import time
from pathlib import Path

import pytest

from ottla.cli.tasks.pipeline import (
    Interrupted,
    Wanted,
    _Asked,
    _interruptible,
    _sentences,
    check_pipeline,
)
from ottla.spark.pipelines.model import PipelineError, PipelineErrors

RIGHT = """
bootstrap: 127.0.0.1:{port}
sources:
  orders: {{topic: orders}}
sinks:
  lake: {{from: orders, delta: lake}}
"""


def test_signals_are_counted_while_it_listens() -> None:
    asked = _Asked()
    before = signal.getsignal(signal.SIGTERM)
    with asked.listening():
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
    assert asked.times == 2
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_it_checks_is_no_keyboard_interrupt(number: int) -> None:
    """For which py4j would print a traceback."""
    with pytest.raises(Interrupted), _interruptible():
        os.kill(os.getpid(), number)


def test_an_interruption_is_told_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with _sentences(Wanted(Path("p.yaml"))) as outcome:
        raise Interrupted
    assert outcome.status == 130  # type: ignore[unreachable]
    assert capsys.readouterr().err == "ottla: interrupted; nothing was started\n"


def test_every_error_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    errors = [PipelineError("p.yaml", 7, "two"), PipelineError("p.yaml", 3, "one")]
    with _sentences(Wanted(Path("p.yaml"), is_json=True)) as outcome:
        raise PipelineErrors(errors)
    assert outcome.status == 1  # type: ignore[unreachable]
    told = capsys.readouterr()
    assert told.err == "ottla: p.yaml:3: one\nottla: p.yaml:7: two\n"
    assert told.out.splitlines()[0] == '{"event": "error", "line": 3, "sentence": "one"}'


@pytest.mark.parametrize("has_trace", [False, True])
def test_the_trace_of_a_task_is_shown_on_request(
    capsys: pytest.CaptureFixture[str], has_trace: bool
) -> None:
    error = PipelineError("p.yaml", 7, "lake: ZeroDivisionError")
    error.trace = "Traceback\n  of Spark"
    with _sentences(Wanted(Path("p.yaml"), has_trace=has_trace)):
        raise error
    told = capsys.readouterr().err  # type: ignore[unreachable]
    assert told.startswith("ottla: p.yaml:7: lake: ZeroDivisionError\n")
    assert ("Traceback\n  of Spark\n" in told) == has_trace
    assert ("--trace" in told) != has_trace


def test_a_broker_that_is_away_is_told_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    file = tmp_path / "p.yaml"
    file.write_text(RIGHT.format(port=port))
    began = time.monotonic()
    assert check_pipeline(Wanted(file), is_quick=False) == 1
    assert time.monotonic() - began < 5, "no JVM was started"
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert str(port) in told
