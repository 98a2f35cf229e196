from ottla.spark.pipelines.build import PLACE_IN_SQL


def test_the_place_in_a_query_is_found() -> None:
    for text in ("...; line 3 pos 4", "(line 3, pos 4)", "== SQL (line 3, position 4) =="):
        found = PLACE_IN_SQL.search(text)
        assert found is not None
        assert found[1] == "3"
