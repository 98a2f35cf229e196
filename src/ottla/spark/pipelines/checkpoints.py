"""The checkpoint of a query of a pipeline: its directory, and the query that it belongs to.

The directory is `<checkpoints>/<pipeline>/<query>`. A file in it names sources and target, so that
another query is refused: Spark would continue at the offsets of the first one. Earlier versions
had `<checkpoints>/<query>`, without that file. Files are accessed through Hadoop, like Spark's own,
so that a checkpoint may be in any storage that Spark can use.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from ottla.spark.errors import SparkError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OWNER_FILE: Final = "ottla-query.json"
SPARK_FILE: Final = "metadata"  # Written by Spark at the first start of a query.


@dataclass(frozen=True, slots=True)
class Owner:
    """The query of a checkpoint; source and target as they are written in the pipeline's file."""

    sources: Sequence[str]
    target: str

    def __str__(self) -> str:
        return f"{', '.join(self.sources)} to {self.target}"

    def may_continue(self, former: "Owner") -> bool:
        """Topics may be added and removed, but one must remain."""
        return self.target == former.target and not set(self.sources).isdisjoint(former.sources)


class Checkpoint:
    def __init__(
        self, spark: "SparkSession", base: str, pipeline: str, query: str, owner: Owner
    ) -> None:
        base = base if "://" in base else os.path.abspath(base)
        self._owner = owner
        self._files = _Files(spark)
        self._former = f"{base}/{query}"
        self.path = f"{base}/{pipeline}/{query}"

    def check(self) -> None:
        """SparkError if it is another query's, or if there is one in the former place."""
        former = self._read()
        if former is not None and not self._owner.may_continue(former):
            raise SparkError(
                f"the checkpoint {self.path} is of the query from {former}, and this one is from"
                f" {self._owner}: give this one another name, or remove the checkpoint"
            )
        if not self._files.is_file(f"{self.path}/{SPARK_FILE}") and self._files.is_file(
            f"{self._former}/{SPARK_FILE}"
        ):
            raise SparkError(
                f"{self._former} is a checkpoint of an earlier version, which does not say of which"
                f" pipeline: if it is of this one, move it to {self.path}; if not, move it to the"
                " directory of its own pipeline"
            )

    def claim(self) -> None:
        """Write the owner into it, before the query starts."""
        self.check()
        if self._read() != self._owner:
            self._files.write(f"{self.path}/{OWNER_FILE}", json.dumps(asdict(self._owner)))

    def _read(self) -> Owner | None:
        text = self._files.read(f"{self.path}/{OWNER_FILE}")
        if text is None:
            return None
        try:
            found = json.loads(text)
            return Owner(tuple(found["sources"]), found["target"])
        except (ValueError, LookupError, TypeError) as failure:
            raise SparkError(f"{self.path}/{OWNER_FILE} cannot be read: {failure}") from failure


def topics_of(frame: "DataFrame") -> tuple[str, ...]:
    """The topics and patterns that a stream reads, sorted."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    found = set()
    for index in range(leaves.size()):
        leaf = leaves.apply(index)
        if leaf.getClass().getSimpleName() != "StreamingRelationV2":
            continue
        options = leaf.extraOptions()
        if pattern := options.get("subscribePattern"):
            found.add(f"pattern {pattern}")
        names = (options.get("subscribe") or "").split(",")
        found |= {f"topic {name.strip()}" for name in names if name.strip()}
    return tuple(sorted(found))


class _Files:
    """Small files in any storage that Spark can use."""

    def __init__(self, spark: "SparkSession") -> None:
        self._jvm: Any = spark._jvm
        self._conf: Any = spark._jsparkSession.sessionState().newHadoopConf()

    def is_file(self, name: str) -> bool:
        path, system = self._at(name)
        return bool(system.exists(path)) and bool(system.getFileStatus(path).isFile())

    def read(self, name: str) -> str | None:
        path, system = self._at(name)
        if not system.exists(path):
            return None
        opened = system.open(path)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(opened, "UTF-8"))
        finally:
            opened.close()

    def write(self, name: str, text: str) -> None:
        """The whole file or nothing, where the storage can rename."""
        path, system = self._at(name)
        written, _ = self._at(f"{name}.tmp")
        opened = system.create(written, True)
        try:
            opened.write(bytearray(text.encode()))
        finally:
            opened.close()
        system.delete(path, False)
        system.rename(written, path)

    def _at(self, name: str) -> tuple[Any, Any]:
        path = self._jvm.org.apache.hadoop.fs.Path(name)
        return path, path.getFileSystem(self._conf)
