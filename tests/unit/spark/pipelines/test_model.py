import pytest

from ottla.spark.pipelines.model import (
    Declaration,
    PipelineError,
    PipelineErrors,
    Sink,
    Source,
    Step,
    check,
)


def declared(
    *,
    sources: list[Source] | None = None,
    steps: list[Step] | None = None,
    sinks: list[Sink] | None = None,
) -> Declaration:
    sources = [Source("orders", 2, topic="orders")] if sources is None else sources
    first = sources[0].name if sources else "orders"
    return Declaration(
        "p.yaml",
        sources=sources,
        steps=steps or [],
        sinks=[Sink("lake", 9, source=first, delta="lake")] if sinks is None else sinks,
    )


def test_a_pipeline_without_mistakes_passes() -> None:
    check(
        declared(
            sources=[
                Source("a", 1, topic="a", schema="id long", dead_letter="a.dlq"),
                Source("b", 2, path="b.parquet", watermark=None),
                Source("c", 3, pattern="c.*", watermark="timestamp 2 minutes"),
            ],
            steps=[
                Step("one", 4, sql="select * from a join b"),
                Step("two", 5, function=print, inputs=("a", "one")),
            ],
            sinks=[
                Sink("x", 6, source="one", topic="x"),
                Sink("y", 7, source="two", delta="y", key=["id"], sequence="offset"),
                Sink("z", 8, source="c", parquet="z"),
            ],
        )
    )


@pytest.mark.parametrize(
    ("wrong", "line", "sentence"),
    [
        (declared(sources=[]), 1, "there are no sources"),
        (declared(sinks=[]), 1, "there are no sinks"),
        (declared(sources=[Source("or ders", 3, topic="o")]), 3, "'or ders' is no name"),
        (
            declared(sources=[Source("a", 3, topic="o"), Source("a", 5, topic="o")]),
            5,
            "'a' is declared already, on line 3",
        ),
        (declared(sources=[Source("a", 3)]), 3, "needs one of topic, pattern and path"),
        (declared(sources=[Source("a", 3, topic="a", path="b")]), 3, "needs one of"),
        (declared(sources=[Source("a", 3, topic="a", valid="x")]), 3, "has no schema"),
        (declared(sources=[Source("a", 3, topic="a", schema="x int")]), 3, "name the dead_letter"),
        (declared(sources=[Source("a", 3, topic="a", watermark="t")]), 3, "is no column and a"),
        (declared(steps=[Step("s", 4)]), 4, "step 's' needs its SQL, or a function"),
        (
            declared(steps=[Step("s", 4, function=print, inputs=("oders",))]),
            4,
            "step 's' takes 'oders', which is no source or step; did you mean 'orders'?",
        ),
        (
            declared(sinks=[Sink("x", 9, source="zzz", topic="x")]),
            9,
            "sink 'x' writes 'zzz', which is no source or step; before it come orders",
        ),
        (declared(sinks=[Sink("x", 9, source="orders")]), 9, "needs one of topic, topic_column"),
        (
            declared(sinks=[Sink("x", 9, source="orders", topic="a", delta="b")]),
            9,
            "needs one of topic",
        ),
        (
            declared(sinks=[Sink("x", 9, source="orders", topic="a", delete="b")]),
            9,
            "belong to a Delta table",
        ),
        (
            declared(sinks=[Sink("x", 9, source="orders", delta="a", delete="b")]),
            9,
            "need the key that rows are merged by",
        ),
    ],
)
def test_an_error_is_reported_with_its_line(wrong: Declaration, line: int, sentence: str) -> None:
    with pytest.raises(PipelineError) as caught:
        check(wrong)
    assert str(caught.value).startswith(f"p.yaml:{line}: ")
    assert sentence in str(caught.value)


@pytest.mark.parametrize("name", ["../x", "", "a/b", ".hidden", "x\n"])
def test_a_pipeline_is_named_so_that_its_name_can_be_a_directory(name: str) -> None:
    wrong = declared()
    wrong.name = name
    with pytest.raises(PipelineError, match="is part of a path"):
        check(wrong)


def test_all_errors_are_reported_together_and_sorted() -> None:
    wrong = declared(
        sources=[Source("a", 3), Source("b", 2, topic="b", valid="x")],
        steps=[Step("s", 5)],
        sinks=[Sink("x", 9, source="zzz"), Sink("x", 8, source="s", topic="t")],
    )
    with pytest.raises(PipelineErrors) as caught:
        check(wrong)
    assert [(error.line, error.sentence.split(":")[0]) for error in caught.value.errors] == [
        (2, "source 'b' has no schema, so there is nothing to be dead of"),
        (3, "source 'a' needs one of topic, pattern and path"),
        (5, "step 's' needs its SQL, or a function"),
        (8, "'x' is declared already, on line 9"),
        (9, "sink 'x' writes 'zzz', which is no source or step; before it come a, b, s"),
        (9, "sink 'x' needs one of topic, topic_column, delta and parquet"),
    ]


def test_a_step_reads_the_words_of_its_query() -> None:
    step = Step("s", 5, sql="SELECT * FROM orders JOIN customers USING (id)")
    assert step.reads({"customers"})
    assert not step.reads({"order"})
    assert Step("f", 6, function=print, inputs=("orders",)).reads({"orders"})


def test_a_sink_says_where_it_writes() -> None:
    assert Sink("x", 1, delta="lake/x").target == "Delta table lake/x"
    assert Sink("x", 1, parquet="files").target == "Parquet files files"
    assert Sink("x", 1, topic="bills").target == "topic bills"
    assert Sink("x", 1, topic_column="to").target == "topics of column to"
