from ottla.spark.pipelines.build import PLACE_IN_SQL, sentence_of


def test_the_sentence_is_found_in_what_spark_says() -> None:
    long = (
        "[STREAM_FAILED] Query terminated\nTraceback (most recent call last):\n  File x\n"
        "ottla.spark.errors.BadOption: option 'topic' is 'x': there is no such topic\n"
        "\tat org.apache.spark.Foo\n"
    )
    assert sentence_of(long) == "option 'topic' is 'x': there is no such topic"
    table = "[TABLE_OR_VIEW_NOT_FOUND] The table `x` cannot be found. SQLSTATE: 42P01; line 1"
    assert sentence_of(table) == "[TABLE_OR_VIEW_NOT_FOUND] The table `x` cannot be found."


def test_the_place_in_a_query_is_found() -> None:
    for text in ("...; line 3 pos 4", "(line 3, pos 4)", "== SQL (line 3, position 4) =="):
        found = PLACE_IN_SQL.search(text)
        assert found is not None
        assert found[1] == "3"
