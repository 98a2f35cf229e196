"""What a reader was asked for, checked as a whole before anything is sent to a broker.

The names are those of Spark's Kafka source, so that a query moves by changing its format;
`columns`, `group`, `maxBytesPerTrigger` and `filterPushdown` are ours.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ottla.client.offsets import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED
from ottla.model.types import TopicPartition
from ottla.spark.arrow.schema import COLUMNS, WITH_HEADERS
from ottla.spark.errors import BadOption
from ottla.spark.options import Access, Given
from ottla.spark.sessions.session import PUSHDOWN_VARIABLE

FETCH_BYTES = 4 * 1024 * 1024
WAIT_MS = 500
METADATA_AGE_MS_MAX = 30_000
TRIGGER_DELAY_MS_MAX = 15 * 60_000
ENDS = {"earliest": EARLIEST, "latest": LATEST}
OF_SINKS = ("topic", "includeTimestamp")


@dataclass(frozen=True, slots=True)
class Selection:
    """Which partitions are read: exactly one of the three is given."""

    option: str
    text: str
    names: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    assigned: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class Bound:
    """Where reading begins or ends: at an end of the log, at offsets, or at times."""

    option: str
    text: str
    everywhere: int | None = None  # EARLIEST or LATEST.
    offsets: Mapping[TopicPartition, int] | None = None
    time_ms: int | None = None
    times_ms: Mapping[TopicPartition, int] | None = None
    is_latest_if_none: bool = True  # Where no record is as young as the time.


@dataclass(frozen=True, slots=True)
class SourceOptions:
    access: Access
    selection: Selection
    starting: Bound
    ending: Bound
    columns: tuple[str, ...] = COLUMNS
    isolation: int = READ_UNCOMMITTED
    fails_on_data_loss: bool = True
    has_pushdown: bool = False
    group: str | None = None
    offsets_max: int | None = None
    offsets_min: int | None = None
    trigger_delay_ms_max: int = TRIGGER_DELAY_MS_MAX
    bytes_max: int | None = None
    partitions_min: int | None = None
    records_per_partition_max: int | None = None
    fetch_bytes: int = FETCH_BYTES
    wait_ms: int = WAIT_MS
    metadata_age_ms_max: int = METADATA_AGE_MS_MAX


def source_options(options: Mapping[str, str], *, is_stream: bool) -> SourceOptions:
    given = Given(options)
    fetch_bytes = given.size("kafka.max.partition.fetch.bytes", FETCH_BYTES) or FETCH_BYTES
    made = SourceOptions(
        access=given.access(),
        selection=_selection(given),
        starting=_bound(given, "starting", "latest" if is_stream else "earliest"),
        ending=_bound(given, "ending", "latest"),
        columns=_columns(given),
        isolation=_isolation(given),
        fails_on_data_loss=given.flag("failOnDataLoss", True),
        has_pushdown=given.flag("filterPushdown", os.environ.get(PUSHDOWN_VARIABLE) == "true"),
        group=given.text("group"),
        offsets_max=given.number("maxOffsetsPerTrigger"),
        offsets_min=given.number("minOffsetsPerTrigger"),
        trigger_delay_ms_max=given.duration_ms("maxTriggerDelay", TRIGGER_DELAY_MS_MAX),
        bytes_max=given.size("maxBytesPerTrigger"),
        partitions_min=given.number("minPartitions"),
        records_per_partition_max=given.number("maxRecordsPerPartition"),
        fetch_bytes=min(fetch_bytes, given.size("kafka.fetch.max.bytes", fetch_bytes) or 1),
        wait_ms=given.duration_ms("kafka.fetch.max.wait.ms", WAIT_MS),
        metadata_age_ms_max=given.duration_ms("kafka.metadata.max.age.ms", METADATA_AGE_MS_MAX),
    )
    given.finish(OF_SINKS)
    _check_together(made, given, is_stream=is_stream)
    return made


def chosen_columns(options: Mapping[str, str]) -> tuple[str, ...]:
    """Only the columns: Spark asks for them before it says whether a stream is read."""
    return _columns(Given(options))


def _check_together(made: SourceOptions, given: Given, *, is_stream: bool) -> None:
    start, end = made.starting, made.ending
    if is_stream:
        for name in given.names("ending"):
            raise BadOption(
                name, given.all[name.lower()], "a stream has no end; read a batch instead"
            )
    elif start.everywhere == LATEST or LATEST in (start.offsets or {}).values():
        raise BadOption(start.option, start.text, "a batch that begins at the latest has no rows")
    if end.everywhere == EARLIEST or EARLIEST in (end.offsets or {}).values():
        raise BadOption(end.option, end.text, "a batch that ends at the earliest has no rows")
    low, high = made.offsets_min, made.offsets_max
    if low and high and low > high:
        why = f"it must not be more than maxOffsetsPerTrigger, which is {high}"
        raise BadOption("minOffsetsPerTrigger", low, why)
    if made.group is not None and not made.group.strip():
        raise BadOption("group", made.group, "the name of a consumer group is expected")


def _selection(given: Given) -> Selection:
    names = ("subscribe", "subscribePattern", "assign")
    found = {name: text for name in names if (text := given.text(name)) is not None}
    if len(found) != 1:
        why = "give exactly one of subscribe, subscribePattern and assign"
        raise BadOption(next(iter(found), "subscribe"), next(iter(found.values()), None), why)
    ((option, text),) = found.items()
    if option == "subscribe":
        topics = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
        if not topics:
            raise BadOption(option, text, "give the names of topics, separated by commas")
        return Selection(option, text, names=topics)
    if option == "subscribePattern":
        try:
            return Selection(option, text, pattern=re.compile(text))
        except re.error as failure:
            raise BadOption(option, text, f"it is no regular expression: {failure}") from failure
    parsed = Given({option: text}).json(option) or {}
    places = [
        TopicPartition(topic, partition)
        for topic, partitions in parsed.items()
        for partition in (partitions if isinstance(partitions, list) else [None])
        if isinstance(partition, int)
    ]
    if not places or len(places) != sum(
        len(p) if isinstance(p, list) else 2 for p in parsed.values()
    ):
        raise BadOption(option, text, 'it must be like {"orders": [0, 1]}')
    return Selection(option, text, assigned=tuple(sorted(set(places))))


def _bound(given: Given, side: str, default: str) -> Bound:
    """As in Spark: a time for all goes before times, and those before offsets."""
    time = given.number(f"{side}Timestamp", least=0)
    times = given.json(f"{side}OffsetsByTimestamp")
    option = f"{side}Offsets"
    text = given.text(option)
    strategy = "latest"
    if side == "starting":
        name = "startingOffsetsByTimestampStrategy"
        strategy = given.choice(name, ("error", "latest"), "error")
    or_latest = strategy == "latest"
    if time is not None:
        return Bound(f"{side}Timestamp", str(time), time_ms=time, is_latest_if_none=or_latest)
    if times is not None:
        name, written = f"{side}OffsetsByTimestamp", given.all[f"{side}OffsetsByTimestamp".lower()]
        return Bound(
            name,
            written,
            times_ms=_by_partition(name, written, times, least=0),
            is_latest_if_none=or_latest,
        )
    text = default if text is None else text
    if text.strip().lower() in ENDS:
        return Bound(option, text, everywhere=ENDS[text.strip().lower()])
    if not text.lstrip().startswith("{"):
        raise BadOption(option, text, 'it must be earliest, latest, or like {"orders": {"0": 23}}')
    parsed = Given({option: text}).json(option) or {}
    return Bound(option, text, offsets=_by_partition(option, text, parsed, least=EARLIEST))


def _by_partition(
    option: str, text: str, parsed: Mapping[str, Any], *, least: int
) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for topic, partitions in parsed.items():
        if not isinstance(partitions, dict) or not partitions:
            raise BadOption(option, text, 'it must be like {"orders": {"0": 23}}')
        for partition, value in partitions.items():
            is_number = isinstance(value, int) and not isinstance(value, bool) and value >= least
            if not str(partition).isdecimal() or not is_number:
                why = f"{topic}-{partition} cannot be {value!r}: whole numbers from {least} on"
                raise BadOption(option, text, why)
            found[TopicPartition(topic, int(partition))] = value
    return found


def _columns(given: Given) -> tuple[str, ...]:
    has_headers = given.flag("includeHeaders", False)
    text = given.text("columns")
    if text is None:
        return WITH_HEADERS if has_headers else COLUMNS
    by_name = {name.lower(): name for name in WITH_HEADERS}
    asked = [part.strip().lower() for part in text.split(",")]
    wrong = [name for name in asked if name not in by_name]
    if wrong or len(set(asked)) != len(asked):
        why = f"name each column once, of {', '.join(WITH_HEADERS)}"
        raise BadOption("columns", text, why)
    if has_headers and "headers" not in asked:
        raise BadOption("columns", text, "includeHeaders is true, but headers are not among them")
    return tuple(by_name[name] for name in asked)


def _isolation(given: Given) -> int:
    levels = ("read_uncommitted", "read_committed")
    level = given.choice("kafka.isolation.level", levels, "read_uncommitted")
    return READ_COMMITTED if level == "read_committed" else READ_UNCOMMITTED
