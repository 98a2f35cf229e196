from pathlib import Path

import pytest

from ottla.spark.pipeline import load
from ottla.spark.pipelines.model import PipelineError, PipelineErrors, check

WHOLE = """\
from ottla.spark.pipeline import Pipeline

pipeline = Pipeline("orders", checkpoints="state", spark={"spark.ui.enabled": False})
pipeline.source("orders", topic="orders", options={"maxOffsetsPerTrigger": 5})


@pipeline.step
def large(orders):
    return orders.where("amount > 100")


pipeline.sql("all", "SELECT * FROM large")
pipeline.sink("lake", "all", delta="lake", key="id")
"""


def written(tmp_path: Path, text: str, name: str = "p.py") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_file_in_python_declares_the_same(tmp_path: Path) -> None:
    path = written(tmp_path, WHOLE)
    declared = load(path)
    check(declared)
    assert (declared.file, declared.name, declared.checkpoints) == (str(path), "orders", "state")
    assert declared.spark == {"spark.ui.enabled": "false"}
    (source,) = declared.sources
    assert (source.line, source.topic, source.options) == (
        4,
        "orders",
        {"maxOffsetsPerTrigger": "5"},
    )
    large, everything = declared.steps
    assert (large.name, large.inputs, large.line) == ("large", ("orders",), 7)
    assert (everything.sql, everything.line) == ("SELECT * FROM large", 12)
    (sink,) = declared.sinks
    assert (sink.source, sink.key, sink.line) == ("all", ["id"], 13)


def test_yaml_is_read_by_its_name(tmp_path: Path) -> None:
    path = written(tmp_path, "sources: {a: {topic: t}}", "p.yml")
    assert load(path).sources[0].topic == "t"


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("x = (", 1, "'(' was never closed"),
        ("x = 1\ny = x / 0", 2, "ZeroDivisionError: division by zero"),
        ("x = 1", 1, "there must be one Pipeline, not 0"),
        (
            "from ottla.spark.pipeline import Pipeline\np = Pipeline()\n\np.source('a', topik='t')",
            4,
            "source 'a' got an unexpected keyword argument 'topik'",
        ),
    ],
)
def test_an_error_is_reported_with_its_line(
    tmp_path: Path, text: str, line: int, sentence: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(PipelineError) as caught:
        check(load(path))
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert sentence in str(caught.value)


def test_a_file_without_a_pipeline_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="cannot be read: no such file or directory"):
        load(tmp_path / "missing.yaml")
    with pytest.raises(PipelineError, match=r"ends with \.yaml or \.py"):
        load(written(tmp_path, "", "p.txt"))


def test_all_errors_of_a_file_are_reported(tmp_path: Path) -> None:
    text = WHOLE.replace("topic=", "topik=").replace("delta=", "delter=").replace("large(", "big(")
    path = written(tmp_path, text)
    with pytest.raises(PipelineErrors) as caught:
        check(load(path))
    assert [error.line for error in caught.value.errors] == [4, 13]
