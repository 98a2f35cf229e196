import pytest

from ottla.spark.pipelines.model import PipelineError, PipelineErrors, Sink, Source, Step, check
from ottla.spark.pipelines.yaml import read_yaml

WHOLE = """\
name: orders
bootstrap: localhost:9092
checkpoints: state
trigger: 5 seconds
spark:
  spark.sql.shuffle.partitions: 2
sources:
  orders:
    topic: orders
    schema: id long, amount double
    dead_letter: orders.dlq
    options: {maxBytesPerTrigger: 64m}
steps:
  large: SELECT * FROM orders WHERE amount > 100
  totals:
    sql: |
      SELECT id, sum(amount) AS amount
      FROM large GROUP BY id
sinks:
  lake:
    from: totals
    delta: lake/totals
    key: [id]
  copy:
    from: large
    topic: large
    key: id
"""


def test_parts_of_a_source_and_a_sink_have_lines_of_their_own() -> None:
    declared = read_yaml("p.yaml", WHOLE)
    (orders,), (lake, copy) = declared.sources, declared.sinks
    assert [orders.at(part) for part in ("topic", "schema", "dead_letter")] == [9, 10, 11]
    assert orders.at("maxBytesPerTrigger") == 12, "an option"
    assert orders.at("group") == orders.line, "which is not there"
    assert (lake.at("source"), lake.at("delta"), copy.at("topic")) == (21, 22, 26)


def test_a_file_says_what_it_means() -> None:
    declared = read_yaml("p.yaml", WHOLE)
    assert (declared.name, declared.checkpoints, declared.trigger) == (
        "orders",
        "state",
        "5 seconds",
    )
    assert declared.spark == {"spark.sql.shuffle.partitions": "2"}
    assert declared.sources == [
        Source(
            "orders",
            8,
            topic="orders",
            schema="id long, amount double",
            dead_letter="orders.dlq",
            options={"maxBytesPerTrigger": "64m"},
        )
    ]
    large, totals = declared.steps
    assert large == Step("large", 14, sql="SELECT * FROM orders WHERE amount > 100")
    assert totals.line == 17, "the first line of the SQL itself"
    assert totals.sql is not None
    assert totals.sql.startswith("SELECT id")
    assert declared.sinks == [
        Sink("lake", 20, source="totals", delta="lake/totals", key=["id"]),
        Sink("copy", 24, source="large", topic="large", key=["id"]),
    ]
    check(declared)


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("sources:\n  a: {topic: [}", 2, "this is no YAML"),
        ("- a\n- b", 1, "a pipeline has sources, steps and sinks"),
        ("name: x\nsource: {}", 2, "a pipeline has no 'source'; did you mean 'sources'?"),
        ("name: x\nname: y", 2, "a pipeline has 'name' twice"),
        ("sources:\n  a:\n    topik: a", 3, "source 'a' has no 'topik'; did you mean 'topic'?"),
        ("sinks:\n  a:\n    source: b", 3, "sink 'a' has no 'source'"),
        ("sources:\n  a: orders", 2, "source 'a' must be a mapping of names"),
        ("name:\n  - x", 2, "'name' must be a text"),
        ("steps:\n  a: {}", 2, "step 'a' has no SQL"),
        ("steps:\n  a: {sql: []}", 2, "'sql' must be a text"),
    ],
)
def test_an_error_is_reported_with_its_line(text: str, line: int, sentence: str) -> None:
    with pytest.raises(PipelineError) as caught:
        check(read_yaml("p.yaml", text))
    assert str(caught.value).startswith(f"p.yaml:{line}: ")
    assert sentence in str(caught.value)


def test_all_errors_of_a_file_are_reported_and_none_that_only_follows_from_another() -> None:
    text = WHOLE.replace("    topic: orders\n", "    topik: orders\n", 1)
    text = text.replace("from: totals", "form: totals").replace("key: id", "key: id\n    key: x")
    text = text.replace("trigger: 5 seconds", "trigger: [5]").replace("FROM large", "FROM huge")
    with pytest.raises(PipelineErrors) as caught:
        check(read_yaml("p.yaml", text))
    assert str(caught.value).splitlines() == [
        "p.yaml:4: 'trigger' must be a text",
        "p.yaml:9: source 'orders' has no 'topik'; did you mean 'topic'?",
        "p.yaml:21: sink 'lake' has no 'form'; did you mean 'from'?",
        "p.yaml:28: sink 'copy' has 'key' twice",
    ]
