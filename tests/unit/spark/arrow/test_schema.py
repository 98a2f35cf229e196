from pyspark.sql.pandas.types import to_arrow_schema

from ottla.spark.arrow.schema import COLUMNS, WITH_HEADERS, arrow_schema, spark_schema


def test_spark_and_arrow_agree_down_to_what_may_be_null() -> None:
    for columns in (COLUMNS, WITH_HEADERS, ("value", "offset")):
        assert to_arrow_schema(spark_schema(columns), timezone="UTC") == arrow_schema(columns)


def test_the_columns_are_those_of_spark_s_kafka_source() -> None:
    assert spark_schema(WITH_HEADERS).simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
