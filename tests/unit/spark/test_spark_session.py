from ottla.spark.spark_session import SETTINGS, setting_name


def test_settings_are_named_as_spark_does() -> None:
    assert setting_name("spark_ui_enabled") == "spark.ui.enabled"
    assert setting_name("spark.sql.execution.arrow.maxBytesPerBatch") == (
        "spark.sql.execution.arrow.maxBytesPerBatch"
    )


def test_rows_are_not_weighed_one_by_one() -> None:
    """Only exactly this value ends it; tests/spark sees the session that it makes."""
    assert SETTINGS["spark.sql.execution.arrow.maxBytesPerBatch"] == str(2**31 - 1)
