"""The sink of the format `ottla`: rows of a frame become records of topics.

Every task writes idempotently and tells the driver how much; the driver ends the micro-batch. Until
a write is part of a transaction this is at-least-once: no row is lost, but the rows of a task or a
micro-batch that Spark runs again are written again.

The shape is that of a two-phase commit. What the driver decides for one write travels inside the
writer and is decided when Spark pickles the writer for its tasks, once a micro-batch; Spark builds
writers at other times too, only to end a micro-batch with them. The messages of the tasks bring it
back, so that whoever ends the write knows which one it ends.
"""

import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from ottla.client.errors import CannotConnect, ClientError
from ottla.client.metadata import UnknownTopic
from ottla.spark.errors import BadOption, SparkError
from ottla.spark.options import BOOTSTRAP, Access
from ottla.spark.python_daemon import end_in_silence_here
from ottla.spark.sink.cluster import SinkCluster
from ottla.spark.sink.options import read_options
from ottla.spark.sink.producer import SinkSettings
from ottla.spark.sink.rows import Layout
from ottla.spark.sink.task import write

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

log = logging.getLogger("ottla.spark")

end_in_silence_here()  # Who ends a write loads nothing but this.


@dataclass(frozen=True, slots=True)
class Plan:
    """What the driver decided for one write, before its tasks began."""

    write_id: str


@dataclass(frozen=True, slots=True)
class Written(WriterCommitMessage):
    """What one task did."""

    plan: Plan
    rows: int


class TopicWriter:
    """What writers of batches and of streams share."""

    def __init__(self, access: Access, settings: SinkSettings, layout: Layout) -> None:
        self._access = access
        self._settings = settings
        self._layout = layout
        self._plan: Plan | None = None

    def __getstate__(self) -> dict[str, Any]:
        self.decide()
        return self.__dict__.copy()

    def decide(self, *, is_patient: bool = True) -> None:
        """On the driver, once a write; fails before a task does, if the topic is not there."""
        if self._plan is None:
            if self._layout.topic is not None:
                _check_topic(self._access, self._layout.topic, is_patient=is_patient)
            self._plan = Plan(uuid.uuid4().hex)

    def write(self, iterator: Iterator[Any]) -> Written:
        """In a task: every row is confirmed by its broker when this returns."""
        assert self._plan is not None, "a task's writer was pickled"
        return Written(self._plan, write(self._access, self._settings, iterator, self._layout))

    def _end(self, messages: Sequence[Written | None]) -> int:
        """How many rows were written; all tasks must have done so under one plan."""
        done = [message for message in messages if message is not None]
        plans = {message.plan for message in done}
        if len(plans) > 1:
            raise SparkError("tasks of two different writes were to be ended as one")
        return sum(message.rows for message in done)


class BatchTopicWriter(TopicWriter, DataSourceArrowWriter):
    def commit(self, messages: list[Written | None]) -> None:
        log.info("%d rows written, at least once", self._end(messages))

    def abort(self, messages: list[Written | None]) -> None:
        log.warning("the write failed; %d of its rows stay written", self._end(messages))


class StreamTopicWriter(TopicWriter, DataSourceStreamArrowWriter):
    def commit(self, messages: list[Written | None], batchId: int) -> None:  # noqa: N803
        if batchId == 0:
            log.warning("rows are written at least once: after a failure some may be there twice")
        log.info("micro-batch %d: %d rows written", batchId, self._end(messages))

    def abort(self, messages: list[Written | None], batchId: int) -> None:  # noqa: N803
        count = self._end(messages)
        log.warning("micro-batch %d failed; %d of its rows stay written", batchId, count)


def batch_writer(
    schema: "StructType", options: Mapping[str, str], overwrite: bool
) -> BatchTopicWriter:
    writer = BatchTopicWriter(*_checked(schema, options, overwrite))
    writer.decide(is_patient=False)  # Spark builds this one only to write with it.
    return writer


def stream_writer(
    schema: "StructType", options: Mapping[str, str], overwrite: bool
) -> StreamTopicWriter:
    return StreamTopicWriter(*_checked(schema, options, overwrite))


def _checked(
    schema: "StructType", options: Mapping[str, str], overwrite: bool
) -> tuple[Access, SinkSettings, Layout]:
    if overwrite:
        raise SparkError("a topic cannot be overwritten, only appended to: use append mode")
    access, settings, topic = read_options(options)
    return access, settings, Layout.of(schema, topic)


def _check_topic(access: Access, topic: str, *, is_patient: bool) -> None:
    cluster = SinkCluster(access, is_patient=is_patient)
    try:
        cluster.topic(topic)
    except UnknownTopic as failure:
        why = "there is no such topic, and the cluster makes none by itself"
        raise BadOption("topic", topic, why) from failure
    except CannotConnect as failure:
        raise BadOption(BOOTSTRAP, access.bootstrap, str(failure)) from failure
    except ClientError as failure:
        raise BadOption("topic", topic, str(failure)) from failure
    finally:
        cluster.close()
