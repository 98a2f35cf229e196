"""Spark finds the format `ottla` by this package's name; everything else is in `ottla.spark`."""

from ottla.spark.data_source import OttlaDataSource

__all__ = ["DefaultSource"]


class DefaultSource(OttlaDataSource):
    pass
