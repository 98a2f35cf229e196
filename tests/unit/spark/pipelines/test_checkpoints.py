"""The directories themselves are tested with Spark, in tests/spark/test_pipeline_checks.py."""

from ottla.spark.pipelines.checkpoints import Owner


def test_a_query_may_add_and_remove_topics_but_not_change_its_target() -> None:
    former = Owner(("topic a", "topic b"), "topic x")
    assert Owner(("topic b", "topic c"), "topic x").may_continue(former)
    assert not Owner(("topic c",), "topic x").may_continue(former)
    assert not Owner(("topic a",), "topic y").may_continue(former)
