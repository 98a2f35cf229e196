"""The format `ottla` for Spark: creates readers and writers.

Spark pickles this object to its workers, so it holds only the options. Reader and writer are
imported on demand: a worker that writes never loads the decoder.
"""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from ottla.spark.python_daemon import end_in_silence_here
from ottla.spark.sessions.plain_session import tell_once

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

end_in_silence_here()


class OttlaDataSource(DataSource):
    def __init__(self, options: dict[str, str]) -> None:
        """Called on the driver for each reader and writer; tasks get it pickled."""
        super().__init__(options)
        tell_once()

    @classmethod
    def name(cls) -> str:
        return "ottla"

    def schema(self) -> "StructType":
        from ottla.spark.arrow.schema import spark_schema
        from ottla.spark.source.options import chosen_columns

        return spark_schema(chosen_columns(self.options))

    def reader(self, schema: "StructType") -> "DataSourceReader":
        from ottla.spark.source.batch_reader import batch_reader

        return batch_reader(schema, self.options)

    def streamReader(self, schema: "StructType") -> "DataSourceStreamReader":  # noqa: N802
        from ottla.spark.source.stream_reader import StreamReader

        return StreamReader(schema, self.options)

    def writer(self, schema: "StructType", overwrite: bool) -> "DataSourceWriter":
        from ottla.spark.sink.sink import batch_writer

        return batch_writer(schema, self.options, overwrite)

    def streamWriter(self, schema: "StructType", overwrite: bool) -> "DataSourceStreamWriter":  # noqa: N802
        from ottla.spark.sink.sink import stream_writer

        return stream_writer(schema, self.options, overwrite)
